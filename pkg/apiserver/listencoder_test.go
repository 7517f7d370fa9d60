// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	v1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	"github.com/clusterhub/clusterhub/pkg/apis/view"
	"github.com/clusterhub/clusterhub/pkg/apis/view/v1alpha1"
)

func jsonSerializer(t testing.TB) runtime.Encoder {
	t.Helper()
	for _, info := range Codecs.SupportedMediaTypes() {
		if info.MediaType == runtime.ContentTypeJSON {
			return info.Serializer
		}
	}
	t.Fatal("no JSON")
	return nil
}

func objectMeta(name string, n int) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), ResourceVersion: strconv.Itoa(n),
		Labels: map[string]string{"a": "<b>&"}, Annotations: map[string]string{"note": `"kind":"x","apiVersion":"y",`}}
}

func lists(n int) map[schema.GroupVersion]runtime.Object {
	clusters, sets, members := &cluster.ManagedClusterList{}, &cluster.ManagedClusterSetList{}, &view.ClusterSetMemberList{}
	clusters.Items = []cluster.ManagedCluster{}
	clusters.ResourceVersion, clusters.Continue, clusters.RemainingItemCount = "7", "more<", new(int64(3))
	for i := range n {
		name := "c" + strconv.Itoa(i)
		clusters.Items = append(clusters.Items, cluster.ManagedCluster{ObjectMeta: objectMeta(name, i+1)})
		sets.Items = append(sets.Items, cluster.ManagedClusterSet{ObjectMeta: objectMeta(name, i+1), Spec: cluster.ManagedClusterSetSpec{
			ClusterSelector: cluster.ManagedClusterSelector{SelectorType: cluster.ExclusiveLabel,
				ExclusiveLabel: &cluster.ManagedClusterLabel{Key: "info.open-cluster-management.io/a", Value: name}}}})
		members.Items = append(members.Items, view.ClusterSetMember{ObjectMeta: objectMeta(name, i+1)})
	}
	return map[schema.GroupVersion]runtime.Object{
		v1.SchemeGroupVersion: clusters, v1beta1.SchemeGroupVersion: sets, v1beta2.SchemeGroupVersion: sets.DeepCopy(),
		v1alpha1.SchemeGroupVersion: members,
	}
}

// What a client gets is what it would get without the memory, also when the items come out of it.
func TestListEncoder_SaysWhatThePlainEncoderSays(t *testing.T) {
	remembering := newNegotiated(Codecs)
	for _, n := range []int{0, 1, 3, longList + 1} {
		for version, list := range lists(n) {
			if n == 0 && version != v1.SchemeGroupVersion {
				continue // the handlers make empty lists of those that are nil
			}
			var want bytes.Buffer
			if err := Codecs.EncoderForVersion(jsonSerializer(t), version).Encode(list, &want); err != nil {
				t.Fatal(err)
			}
			for _, time := range []string{"first", "second"} {
				encoder := remembering.EncoderForVersion(jsonSerializer(t), version)
				if _, ok := encoder.(*listEncoder); !ok {
					t.Fatalf("%s is encoded by a %T", version, encoder)
				}
				var got bytes.Buffer
				if err := encoder.Encode(list, &got); err != nil {
					t.Fatal(err)
				}
				var a, b any
				if err := json.Unmarshal(got.Bytes(), &a); err != nil {
					t.Fatalf("%s: %v: %s", version, err, got.Bytes())
				}
				if err := json.Unmarshal(want.Bytes(), &b); err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(a, b) {
					t.Errorf("%s, the %s time:\n%s\nwant\n%s", version, time, got.Bytes(), want.Bytes())
				}
			}
		}
	}
}

func TestListEncoder_RemembersAnObjectOnlyAsItIs(t *testing.T) {
	encoder := newNegotiated(Codecs).EncoderForVersion(jsonSerializer(t), v1.SchemeGroupVersion)
	encode := func(c cluster.ManagedCluster) string {
		t.Helper()
		var out bytes.Buffer
		if err := encoder.Encode(&cluster.ManagedClusterList{Items: []cluster.ManagedCluster{c}}, &out); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	c := cluster.ManagedCluster{ObjectMeta: objectMeta("a", 1)}
	first := encode(c)
	changed := c
	changed.Spec.HubAcceptsClient = true
	changed.ResourceVersion = "2"
	if encode(changed) == first {
		t.Error("a changed object is encoded as it was")
	}
	reborn := c
	reborn.UID = "another"
	if encode(reborn) == first {
		t.Error("another object of the same name and version is encoded as the first")
	}
	// What has no version, as in an answer that was not stored, is not remembered.
	nameless := c
	nameless.ResourceVersion = ""
	before := encode(nameless)
	nameless.Spec.HubAcceptsClient = true
	if encode(nameless) == before {
		t.Error("an object without a version is remembered")
	}
}

func TestListEncoder_LeavesOtherFormatsAlone(t *testing.T) {
	s := newNegotiated(Codecs)
	for _, info := range s.SupportedMediaTypes() {
		if info.MediaType == runtime.ContentTypeProtobuf {
			t.Error("protobuf is offered")
		}
		for _, other := range []runtime.Serializer{info.PrettySerializer, info.StrictSerializer} {
			if other == nil {
				continue
			}
			if _, ok := s.EncoderForVersion(other, v1.SchemeGroupVersion).(*listEncoder); ok {
				t.Errorf("a variant of %s is encoded as plain JSON", info.MediaType)
			}
		}
	}
}

func BenchmarkListEncoder(b *testing.B) {
	list := lists(100)[v1.SchemeGroupVersion]
	for name, s := range map[string]runtime.NegotiatedSerializer{"plain": Codecs, "remembering": newNegotiated(Codecs)} {
		encoder := s.EncoderForVersion(jsonSerializer(b), v1.SchemeGroupVersion)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				var out bytes.Buffer
				if err := encoder.Encode(list, &out); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
