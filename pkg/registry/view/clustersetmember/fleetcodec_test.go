// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustersetmember

import (
	"bytes"
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	clusterfuzzer "github.com/clusterhub/clusterhub/pkg/apis/cluster/fuzzer"
	v1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/visibility"
	"github.com/clusterhub/clusterhub/pkg/membership"
)

// What members show is the same, however a cluster was decoded. Should they come to show more, this fails.
func TestFleetCodec_MembersAreThoseOfTheWholeCluster(t *testing.T) {
	full := codecs.LegacyCodec(visibility.SchemeGroupVersion)
	part := fleetCodec{full}
	random := fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, clusterfuzzer.Funcs), rand.NewSource(1), serializer.NewCodecFactory(scheme))
	everything := &cluster.ManagedClusterSet{}
	everything.Name, everything.UID = "all", "u"
	selectBy(everything, map[string]string{})
	skipped := 0
	for range 300 {
		c := &cluster.ManagedCluster{}
		random.Fill(c)
		data, err := runtime.Encode(codecs.LegacyCodec(v1.SchemeGroupVersion), c)
		must(t, err)
		if !bytes.HasPrefix(data, storedCluster) {
			t.Fatalf("a cluster is stored as %.100s", data)
		}
		var changes [][]membership.Change
		for _, codec := range []runtime.Decoder{full, part} {
			obj, err := runtime.Decode(codec, data)
			must(t, err)
			index := membership.New()
			index.SetSet(everything)
			changes = append(changes, index.SetCluster(obj.(*cluster.ManagedCluster)))
		}
		if len(changes[0]) != 1 {
			skipped++
		}
		if diff := cmp.Diff(changes[0], changes[1]); diff != "" {
			t.Fatalf("of %s (-full +part):\n%s", data, diff)
		}
	}
	if skipped > 0 {
		t.Errorf("%d clusters had no member", skipped)
	}
}

func TestFleetCodec_DecodesAllElseInFull(t *testing.T) {
	codec := fleetCodec{codecs.LegacyCodec(visibility.SchemeGroupVersion)}
	data, err := runtime.Encode(codec, &visibility.Revision{Digest: "d"})
	must(t, err)
	obj, err := runtime.Decode(codec, data)
	must(t, err)
	if revision, ok := obj.(*visibility.Revision); !ok || revision.Digest != "d" {
		t.Errorf("got %#v", obj)
	}
	if _, err := runtime.Decode(codec, append(bytes.Clone(storedCluster), `"metadata":7}`...)); err == nil {
		t.Error("a damaged cluster was decoded")
	}
}
