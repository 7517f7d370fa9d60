// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"math/rand"
	"testing"

	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
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

// sameAsPlain holds our encoding against that of the machinery, byte by byte.
func sameAsPlain(t *testing.T, list *view.ClusterSetMemberList) {
	t.Helper()
	encoder := negotiated{Codecs}.EncoderForVersion(jsonSerializer(t), v1alpha1.SchemeGroupVersion)
	if _, ok := encoder.(memberListEncoder); !ok {
		t.Fatalf("members are encoded by a %T", encoder)
	}
	var got, want bytes.Buffer
	if err := encoder.Encode(list.DeepCopy(), &got); err != nil {
		t.Fatal(err)
	}
	if err := Codecs.EncoderForVersion(jsonSerializer(t), v1alpha1.SchemeGroupVersion).Encode(list, &want); err != nil {
		t.Fatal(err)
	}
	if got.String() != want.String() {
		t.Fatalf("got\n%s\nwant\n%s", got.String(), want.String())
	}
}

func TestMemberList_IsEncodedAsTheMachineryWould(t *testing.T) {
	random := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(1), Codecs)
	for n := range 200 {
		list := &view.ClusterSetMemberList{Items: []view.ClusterSetMember{}}
		random.Fill(&list.ListMeta)
		for range n % 5 {
			var m view.ClusterSetMember
			random.Fill(&m)
			if n%2 == 0 { // what members really have
				meta := m.ObjectMeta
				m.ObjectMeta = metav1.ObjectMeta{Name: meta.Name, UID: meta.UID, ResourceVersion: meta.ResourceVersion,
					CreationTimestamp: meta.CreationTimestamp, Labels: meta.Labels}
			}
			list.Items = append(list.Items, m)
		}
		sameAsPlain(t, list)
	}
}

func TestMemberList_EscapesAsTheMachineryWould(t *testing.T) {
	for _, s := range []string{"", "plain", `"`, `\`, "<&>", "\x00\n\t\x7f", "ünï", "\xff", "\u2028", "日本"} {
		m := view.ClusterSetMember{ObjectMeta: metav1.ObjectMeta{Name: s, Labels: map[string]string{s: s, "b": "c"}}}
		m.Spec.Cluster, m.Status.Taints, m.Status.SelectedBy.Selector = s, []string{s, s}, s
		sameAsPlain(t, &view.ClusterSetMemberList{Items: []view.ClusterSetMember{m, {}}})
	}
	sameAsPlain(t, &view.ClusterSetMemberList{})
}

func TestNegotiated_LeavesOtherFormatsAndVersionsAlone(t *testing.T) {
	s := negotiated{Codecs}
	for _, info := range s.SupportedMediaTypes() {
		if info.MediaType == runtime.ContentTypeProtobuf {
			t.Error("protobuf is offered")
		}
		for _, other := range []runtime.Serializer{info.PrettySerializer, info.StrictSerializer} {
			if other == nil {
				continue
			}
			if _, ok := s.EncoderForVersion(other, v1alpha1.SchemeGroupVersion).(memberListEncoder); ok {
				t.Errorf("a variant of %s is encoded as plain JSON", info.MediaType)
			}
		}
	}
	if _, ok := s.EncoderForVersion(jsonSerializer(t), v1.SchemeGroupVersion).(memberListEncoder); ok {
		t.Error("another version is encoded as that of members")
	}
}

func BenchmarkMemberList(b *testing.B) {
	list := &view.ClusterSetMemberList{}
	random := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(1), Codecs)
	for range 100 {
		m := view.ClusterSetMember{ObjectMeta: metav1.ObjectMeta{Name: "cluster-00001.set-00001", UID: "5b0e8ed2-5c5b-5c3a-8a63-26d0b2e27ab5",
			ResourceVersion: "123456789", Labels: map[string]string{"cluster.open-cluster-management.io/clusterset": "set-00001", "env": "prod", "region": "eu"}}}
		random.Fill(&m.CreationTimestamp)
		m.Status.Joined, m.Status.Available, m.Status.KubernetesVersion = "True", "True", "v1.37.1"
		list.Items = append(list.Items, m)
	}
	for name, s := range map[string]runtime.NegotiatedSerializer{"machinery": Codecs, "ours": negotiated{Codecs}} {
		encoder := s.EncoderForVersion(jsonSerializer(b), v1alpha1.SchemeGroupVersion)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var out bytes.Buffer
				if err := encoder.Encode(list, &out); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
