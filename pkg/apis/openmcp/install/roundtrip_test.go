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

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
	openmcpfuzzer "github.com/clusterhub/clusterhub/pkg/apis/openmcp/fuzzer"
)

var funcs = fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, openmcpfuzzer.Funcs)

func schemeAndFiller() (*runtime.Scheme, serializer.CodecFactory, *randfill.Filler) {
	scheme := runtime.NewScheme()
	Install(scheme)
	codecs := serializer.NewCodecFactory(scheme)
	return scheme, codecs, fuzzer.FuzzerFor(funcs, rand.NewSource(rand.Int63()), codecs)
}

func TestEveryKindRoundTripsThroughEveryVersion(t *testing.T) {
	roundtrip.RoundTripTestForAPIGroup(t, Install, openmcpfuzzer.Funcs)
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
	if validated != 5 {
		t.Errorf("%d kinds have declared bounds, want 5", validated)
	}
}

func TestInstall_ServesEveryKind(t *testing.T) {
	scheme := runtime.NewScheme()
	Install(scheme)
	for _, kind := range []string{"ClusterProfile", "Cluster", "ClusterRequest", "AccessRequest"} {
		got := scheme.VersionsForGroupKind(schema.GroupKind{Group: openmcp.GroupName, Kind: kind})
		if len(got) != 1 || got[0].Version != "v1alpha1" || !scheme.Recognizes(got[0].WithKind(kind+"List")) {
			t.Errorf("%s is in %v", kind, got)
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
