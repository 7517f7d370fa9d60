// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

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

	edgefuzzer "github.com/clusterhub/clusterhub/pkg/apis/edge/fuzzer"
	"github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
)

var funcs = fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, edgefuzzer.Funcs)

func served(t *testing.T) *runtime.Scheme {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return scheme
}

func TestEveryServedKindRoundTripsWireFormat(t *testing.T) {
	scheme := served(t)
	codecs := serializer.NewCodecFactory(scheme)
	roundtrip.RoundTripExternalTypesWithoutProtobuf(t, scheme, codecs, fuzzer.FuzzerFor(funcs, rand.NewSource(rand.Int63()), codecs), nil)
}

// Clients that know no types, such as kubectl apply, read and write the same: values with several types, too.
func TestEveryServedKindRoundTripsUnstructured(t *testing.T) {
	scheme := served(t)
	kinds := sets.New[schema.GroupVersionKind]()
	for gvk := range scheme.AllKnownTypes() {
		kinds.Insert(gvk)
	}
	roundtrip.RoundtripToUnstructured(t, scheme, funcs, nil, kinds)
}
