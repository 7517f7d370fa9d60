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

	"github.com/clusterhub/clusterhub/pkg/apis/view/v1alpha1"
)

func TestEveryKindRoundTripsThroughEveryVersion(t *testing.T) {
	roundtrip.RoundTripTestForAPIGroup(t, Install, nil)
}

func TestEveryServedKindRoundTripsWireFormat(t *testing.T) {
	scheme := runtime.NewScheme()
	Install(scheme)
	codecs := serializer.NewCodecFactory(scheme)
	filler := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(rand.Int63()), codecs)
	roundtrip.RoundTripExternalTypesWithoutProtobuf(t, scheme, codecs, filler, nil)
	roundtrip.RoundtripToUnstructured(t, scheme, metafuzzer.Funcs, nil, optionKinds(scheme))
}

func TestFieldSelectors_OfMembers(t *testing.T) {
	scheme := runtime.NewScheme()
	Install(scheme)
	gvk := v1alpha1.SchemeGroupVersion.WithKind("ClusterSetMember")
	for _, label := range []string{"metadata.name", "spec.clusterSet", "spec.cluster"} {
		if l, v, err := scheme.ConvertFieldLabel(gvk, label, "x"); err != nil || l != label || v != "x" {
			t.Errorf("%s: got %q, %q, %v", label, l, v, err)
		}
	}
	if _, _, err := scheme.ConvertFieldLabel(gvk, "status.joined", "True"); err == nil {
		t.Error("status.joined: is a field selector")
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
