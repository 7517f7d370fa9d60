// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"math/rand"
	"testing"

	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/apitesting/roundtrip"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/randfill"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	clusterfuzzer "github.com/clusterhub/clusterhub/pkg/apis/cluster/fuzzer"
)

var funcs = fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, clusterfuzzer.Funcs)

func schemeAndFiller() (*runtime.Scheme, serializer.CodecFactory, *randfill.Filler) {
	scheme := runtime.NewScheme()
	Install(scheme)
	codecs := serializer.NewCodecFactory(scheme)
	return scheme, codecs, fuzzer.FuzzerFor(funcs, rand.NewSource(rand.Int63()), codecs)
}

func TestEveryKindRoundTripsThroughEveryVersion(t *testing.T) {
	roundtrip.RoundTripTestForAPIGroup(t, Install, clusterfuzzer.Funcs)
}

func TestEveryServedKindRoundTripsWireFormat(t *testing.T) {
	scheme, codecs, filler := schemeAndFiller()
	roundtrip.RoundTripExternalTypesWithoutProtobuf(t, scheme, codecs, filler, nil)
}

func TestEveryServedKindRoundTripsUnstructured(t *testing.T) {
	scheme, _, _ := schemeAndFiller()
	roundtrip.RoundtripToUnstructured(t, scheme, funcs, nil, optionKinds(scheme))
}

func TestInstall_ServesEveryKindInItsVersions(t *testing.T) {
	scheme := runtime.NewScheme()
	Install(scheme)
	for kind, versions := range map[string][]string{
		"ManagedCluster":           {"v1"},
		"ManagedClusterSet":        {"v1beta2", "v1beta1"},
		"ManagedClusterSetBinding": {"v1beta2", "v1beta1"},
		"Placement":                {"v1beta1"},
		"PlacementDecision":        {"v1beta1"},
		"AddOnPlacementScore":      {"v1alpha1"},
		"ClusterClaim":             {"v1alpha1"},
	} {
		var got []string
		for _, gv := range scheme.VersionsForGroupKind(schema.GroupKind{Group: cluster.GroupName, Kind: kind}) {
			got = append(got, gv.Version)
			if !scheme.Recognizes(gv.WithKind(kind + "List")) {
				t.Errorf("%s has no list of %s", gv, kind)
			}
		}
		if len(got) != len(versions) || !sets.New(got...).HasAll(versions...) || got[0] != versions[0] {
			t.Errorf("%s is in %q, want %q", kind, got, versions)
		}
	}
}

// optionKinds are the kinds that every group has for requests, and that have no internal form.
func optionKinds(scheme *runtime.Scheme) sets.Set[schema.GroupVersionKind] {
	kinds := sets.New[schema.GroupVersionKind]()
	for gvk := range scheme.AllKnownTypes() {
		if !scheme.Recognizes(gvk.GroupKind().WithVersion(runtime.APIVersionInternal)) {
			kinds.Insert(gvk)
		}
	}
	return kinds
}
