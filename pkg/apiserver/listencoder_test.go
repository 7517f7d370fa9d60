// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"io"
	"math/rand"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/yaml"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	clusterfuzzer "github.com/clusterhub/clusterhub/pkg/apis/cluster/fuzzer"
	v1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	clusterviewv1 "github.com/clusterhub/clusterhub/pkg/apis/clusterview/v1"
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

// sameAsPlain compares our encoding with the generic one, byte by byte.
func sameAsPlain(t *testing.T, version schema.GroupVersion, list runtime.Object) {
	t.Helper()
	encoder := negotiated{Codecs}.EncoderForVersion(jsonSerializer(t), version)
	if _, ok := encoder.(listEncoder); !ok {
		t.Fatalf("lists of %s are encoded by a %T", version, encoder)
	}
	var got, want bytes.Buffer
	if err := encoder.Encode(list.DeepCopyObject(), &got); err != nil {
		t.Fatal(err)
	}
	if err := Codecs.EncoderForVersion(itemKinds{jsonSerializer(t)}, version).Encode(list, &want); err != nil {
		t.Fatal(err)
	}
	if got.String() != want.String() {
		t.Fatalf("got\n%s\nwant\n%s", got.String(), want.String())
	}
}

func listFuzzer(seed int64) *randfill.Filler {
	return fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, clusterfuzzer.Funcs), rand.NewSource(seed), Codecs)
}

func TestMemberList_EncodesLikeMachinery(t *testing.T) {
	random := listFuzzer(1)
	for n := range 200 {
		list := &view.ClusterSetMemberList{Items: []view.ClusterSetMember{}}
		random.Fill(&list.ListMeta)
		for range n % 5 {
			var m view.ClusterSetMember
			random.Fill(&m)
			list.Items = append(list.Items, m)
		}
		sameAsPlain(t, v1alpha1.SchemeGroupVersion, list)
	}
}

func TestClusterList_EncodesLikeMachinery(t *testing.T) {
	for n := range 400 {
		random := listFuzzer(int64(n)).NilChance(float64(n%4) / 4)
		list := &cluster.ManagedClusterList{Items: []cluster.ManagedCluster{}}
		random.Fill(&list.ListMeta)
		for range n % 5 {
			var c cluster.ManagedCluster
			random.Fill(&c)
			if n%3 == 0 { // fields that the round trips of versions leave out
				random.Fill(&c.TypeMeta)
				c.SelfLink = "/some/<path>" //nolint:staticcheck // Not set any more, but it would be written.
				c.Status.Capacity = cluster.ResourceList{"cpu": resource.MustParse("1500m"), "a<b": resource.MustParse("1Ki"), "memory": {}}
				c.ManagedFields = append(c.ManagedFields, metav1.ManagedFieldsEntry{},
					metav1.ManagedFieldsEntry{Time: &metav1.Time{}, FieldsV1: &metav1.FieldsV1{}},
					metav1.ManagedFieldsEntry{FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{".":{},"k:{\"type\":\"a\"}":{}}}}`)},
					metav1.ManagedFieldsEntry{FieldsV1: metav1.NewFieldsV1(` { "a b" : "<&>" , "\u2028": "ü" } `)})
			}
			list.Items = append(list.Items, c)
		}
		sameAsPlain(t, v1.SchemeGroupVersion, list)
		sameAsPlain(t, clusterviewv1.SchemeGroupVersion, list)
	}
	sameAsPlain(t, v1.SchemeGroupVersion, &cluster.ManagedClusterList{})
}

func TestMemberList_EscapesLikeMachinery(t *testing.T) {
	for _, s := range []string{"", "plain", `"`, `\`, "<&>", "\x00\n\t\x7f", "ünï", "\xff", "\u2028", "日本"} {
		m := view.ClusterSetMember{ObjectMeta: metav1.ObjectMeta{Name: s, Labels: map[string]string{s: s, "b": "c"}}}
		m.Spec.Cluster, m.Status.Taints, m.Status.SelectedBy.Selector = s, []string{s, s}, s
		sameAsPlain(t, v1alpha1.SchemeGroupVersion, &view.ClusterSetMemberList{Items: []view.ClusterSetMember{m, {}}})
	}
	sameAsPlain(t, v1alpha1.SchemeGroupVersion, &view.ClusterSetMemberList{})
}

// TestList_ItemsHaveKind verifies that each item of a list has its kind, in all our groups, versions and formats.
func TestList_ItemsHaveKind(t *testing.T) {
	served := negotiated{Codecs}
	tried := 0
	for kind := range Scheme.AllKnownTypes() {
		item, ok := strings.CutSuffix(kind.Kind, "List")
		if !ok || kind.Version == runtime.APIVersionInternal || kind.Group == "" || !Scheme.Recognizes(kind.GroupVersion().WithKind(item)) {
			continue
		}
		list, err := Scheme.New(kind)
		if err != nil {
			t.Fatal(err)
		}
		one, err := Scheme.New(kind.GroupVersion().WithKind(item))
		if err != nil {
			t.Fatal(err)
		}
		if err := meta.SetList(list, []runtime.Object{one, one.DeepCopyObject()}); err != nil {
			t.Fatal(err)
		}
		internal, err := Scheme.ConvertToVersion(list, runtime.InternalGroupVersioner)
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range served.SupportedMediaTypes() {
			for _, serializer := range []runtime.Serializer{info.Serializer, info.PrettySerializer} {
				if serializer == nil {
					continue
				}
				var out bytes.Buffer
				if err := served.EncoderForVersion(serializer, kind.GroupVersion()).Encode(internal.DeepCopyObject(), &out); err != nil {
					t.Fatal(err)
				}
				got := &unstructured.UnstructuredList{}
				if err := yaml.Unmarshal(out.Bytes(), &got.Object); err != nil {
					t.Fatal(err)
				}
				items, _, err := unstructured.NestedSlice(got.Object, "items")
				if err != nil || len(items) != 2 {
					t.Fatalf("%s as %s has %d items, %v", kind, info.MediaType, len(items), err)
				}
				for _, of := range items {
					if of := of.(map[string]any); of["kind"] != item || of["apiVersion"] != kind.GroupVersion().String() {
						t.Errorf("an item of %s as %s is a %v of %v", kind, info.MediaType, of["kind"], of["apiVersion"])
					}
				}
				tried++
			}
		}
	}
	if tried < 30 {
		t.Errorf("only %d lists were tried", tried)
	}
}

// TestList_IsStreamed verifies that a long list is written in parts, the first of which is long enough for the response to be compressed.
func TestList_IsStreamed(t *testing.T) {
	list := &view.ClusterSetMemberList{Items: make([]view.ClusterSetMember, 5000)}
	for i := range list.Items {
		list.Items[i].Name = "cluster-" + strconv.Itoa(i)
	}
	sameAsPlain(t, v1alpha1.SchemeGroupVersion, list)
	var sizes partSizes
	if err := (listEncoder{version: v1alpha1.SchemeGroupVersion}).Encode(list, &sizes); err != nil {
		t.Fatal(err)
	}
	if len(sizes) < 2 || sizes[0] <= 128<<10 || slices.Max(sizes) > chunk+1024 {
		t.Errorf("written in parts of %v bytes", sizes)
	}
}

type partSizes []int

func (s *partSizes) Write(p []byte) (int, error) {
	*s = append(*s, len(p))
	return len(p), nil
}

func TestNegotiated_IgnoresOtherFormatsAndVersions(t *testing.T) {
	s := negotiated{Codecs}
	for _, info := range s.SupportedMediaTypes() {
		if info.MediaType == runtime.ContentTypeProtobuf {
			t.Error("protobuf is offered")
		}
		for _, other := range []runtime.Serializer{info.PrettySerializer, info.StrictSerializer} {
			if other == nil {
				continue
			}
			if _, ok := s.EncoderForVersion(other, v1alpha1.SchemeGroupVersion).(listEncoder); ok {
				t.Errorf("a variant of %s is encoded as plain JSON", info.MediaType)
			}
		}
	}
	if _, ok := s.EncoderForVersion(jsonSerializer(t), v1beta1.SchemeGroupVersion).(listEncoder); ok {
		t.Error("a version without such lists is encoded as one with them")
	}
}

func BenchmarkList(b *testing.B) {
	members, clusters := &view.ClusterSetMemberList{}, &cluster.ManagedClusterList{}
	labels := map[string]string{"cluster.open-cluster-management.io/clusterset": "set-00001", "env": "prod", "region": "eu"}
	meta := metav1.ObjectMeta{Name: "cluster-00001.set-00001", UID: "5b0e8ed2-5c5b-5c3a-8a63-26d0b2e27ab5", ResourceVersion: "123456789",
		CreationTimestamp: metav1.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC), Labels: labels}
	for range 100 {
		m := view.ClusterSetMember{ObjectMeta: meta}
		m.Status.Joined, m.Status.Available, m.Status.KubernetesVersion = "True", "True", "v1.37.1"
		members.Items = append(members.Items, m)
		c := cluster.ManagedCluster{ObjectMeta: meta}
		c.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "agent", Operation: "Update", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{".":{},"f:env":{},"f:region":{}}},"f:spec":{"f:hubAcceptsClient":{},"f:leaseDurationSeconds":{}}}`)}}
		for _, t := range []string{"HubAcceptedManagedCluster", "ManagedClusterJoined", "ManagedClusterConditionAvailable"} {
			c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: t, Status: "True", Reason: t, Message: "A message of some length.",
				LastTransitionTime: meta.CreationTimestamp})
		}
		c.Status.Capacity = cluster.ResourceList{"cpu": resource.MustParse("16"), "memory": resource.MustParse("64Gi")}
		clusters.Items = append(clusters.Items, c)
	}
	for name, s := range map[string]runtime.NegotiatedSerializer{"machinery": Codecs, "ours": negotiated{Codecs}} {
		for version, list := range map[schema.GroupVersion]runtime.Object{v1.SchemeGroupVersion: clusters, v1alpha1.SchemeGroupVersion: members} {
			encoder := s.EncoderForVersion(jsonSerializer(b), version)
			b.Run(version.Group+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if err := encoder.Encode(list, io.Discard); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
