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

	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	edgefuzzer "github.com/clusterhub/clusterhub/pkg/apis/edge/fuzzer"
)

var funcs = fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, edgefuzzer.Funcs)

func schemeAndFiller() (*runtime.Scheme, serializer.CodecFactory, *randfill.Filler) {
	scheme := runtime.NewScheme()
	Install(scheme)
	codecs := serializer.NewCodecFactory(scheme)
	return scheme, codecs, fuzzer.FuzzerFor(funcs, rand.NewSource(rand.Int63()), codecs)
}

func TestEveryKindRoundTripsThroughEveryVersion(t *testing.T) {
	roundtrip.RoundTripTestForAPIGroup(t, Install, edgefuzzer.Funcs)
}

func TestEveryServedKindRoundTripsWireFormat(t *testing.T) {
	scheme, codecs, filler := schemeAndFiller()
	roundtrip.RoundTripExternalTypesWithoutProtobuf(t, scheme, codecs, filler, nil)
}

func TestEveryServedKindRoundTripsUnstructured(t *testing.T) {
	scheme, _, _ := schemeAndFiller()
	roundtrip.RoundtripToUnstructured(t, scheme, funcs, nil, optionKinds(scheme))
}

// TestDeclaredValidation_TakesAnyObject validates objects with and without each pointer: the generated code dereferences those whose presence is not
// declared.
func TestDeclaredValidation_TakesAnyObject(t *testing.T) {
	scheme, _, filler := schemeAndFiller()
	filler = filler.NilChance(0.5).NumElements(0, 3)
	validated := 0
	for gvk := range scheme.AllKnownTypes() {
		object, err := scheme.New(gvk)
		if err != nil || !scheme.HasValidationFunc(object) {
			continue
		}
		validated++
		old := object.DeepCopyObject()
		for range 200 {
			filler.Fill(object)
			filler.Fill(old)
			scheme.Validate(t.Context(), nil, object)
			scheme.ValidateUpdate(t.Context(), nil, object, old)
		}
	}
	if validated != 6 {
		t.Errorf("%d kinds have declared bounds, want 6", validated)
	}
}

func TestInstall_ServesEveryKindInItsVersions(t *testing.T) {
	scheme := runtime.NewScheme()
	Install(scheme)
	for kind, versions := range map[string][]string{
		"EdgeNode":          {"v1alpha1"},
		"EdgeService":       {"v1alpha1"},
		"DeploymentPolicy":  {"v1alpha1"},
		"DeploymentPattern": {"v1alpha1"},
		"EdgePlacement":     {"v1alpha1"},
	} {
		var got []string
		for _, gv := range scheme.VersionsForGroupKind(schema.GroupKind{Group: edge.GroupName, Kind: kind}) {
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
