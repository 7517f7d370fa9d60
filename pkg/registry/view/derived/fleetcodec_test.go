// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package derived

import (
	"bytes"
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	clusterfuzzer "github.com/clusterhub/clusterhub/pkg/apis/cluster/fuzzer"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/install"
	v1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/visibility"
	"github.com/clusterhub/clusterhub/pkg/membership"
)

var (
	scheme = runtime.NewScheme()
	codecs = serializer.NewCodecFactory(scheme)
)

func init() {
	install.Install(scheme)
	utilruntime.Must(visibility.AddToScheme(scheme))
}

// setOfAll returns a set that selects every cluster.
func setOfAll() *cluster.ManagedClusterSet {
	return &cluster.ManagedClusterSet{
		ObjectMeta: metav1.ObjectMeta{Name: "all", UID: "u"},
		Spec: cluster.ManagedClusterSetSpec{ClusterSelector: cluster.ManagedClusterSelector{
			SelectorType: cluster.LabelSelector, LabelSelector: &metav1.LabelSelector{},
		}},
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestFleetCodec_MembersMatchWholeCluster: members are the same, however a cluster was decoded. The test fails when members show a further
// field.
func TestFleetCodec_MembersMatchWholeCluster(t *testing.T) {
	full := codecs.LegacyCodec(visibility.SchemeGroupVersion)
	part := fleetCodec{full}
	random := fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, clusterfuzzer.Funcs), rand.NewSource(1), serializer.NewCodecFactory(scheme))
	everything := setOfAll()
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

func TestFleetCodec_DecodesOthersFully(t *testing.T) {
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

// FuzzFleetCodec: whatever the content of a stored cluster, its members are the same as after decoding all of it.
func FuzzFleetCodec(f *testing.F) {
	for _, rest := range []string{
		`"metadata":{"name":"c1","uid":"u","labels":{"a":"b"}},"spec":{"hubAcceptsClient":true,"taints":[{"key":"k","value":"v","effect":"NoSelect","timeAdded":null}]},"status":{"conditions":[{"type":"ManagedClusterJoined","status":"True"}],"version":{"kubernetes":"v1.37.1"}}}`,
		`"metadata":{"name":"c1","Labels":{"a":"b"},"labels":null}}`,
		`"metadata":{"name":"c1","labels":{"a":"b"},"labels":{"c":"d"}},"kind":"ManagedClusterSet"}`,
		`"metadata":{"name":"\ud800","creationTimestamp":"2026-01-02T03:04:05Z"},"spec":null}`,
		`"metadata":{"name":"c1","Labels":{"a":"b"}},"Spec":{"hubAcceptsClient":true}}`,
		`"metadata":7}`, `"metadata":{}`, `}`, ``,
	} {
		f.Add([]byte(rest))
	}
	full := codecs.LegacyCodec(visibility.SchemeGroupVersion)
	everything := setOfAll()
	f.Fuzz(func(t *testing.T, rest []byte) {
		data := append(append([]byte{}, storedCluster...), rest...)
		whole, err := runtime.Decode(full, data)
		if err != nil {
			return
		}
		stored, ok := whole.(*cluster.ManagedCluster)
		if !ok {
			return // a second kind, which the store never writes
		}
		part, err := runtime.Decode(fleetCodec{full}, data)
		if err != nil {
			t.Fatalf("%v of %s", err, data)
		}
		var changes [][]membership.Change
		for _, c := range []*cluster.ManagedCluster{stored, part.(*cluster.ManagedCluster)} {
			index := membership.New()
			index.SetSet(everything)
			changes = append(changes, index.SetCluster(c))
		}
		if diff := cmp.Diff(changes[0], changes[1]); diff != "" {
			t.Errorf("of %s (-full +part):\n%s", data, diff)
		}
	})
}
