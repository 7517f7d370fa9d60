// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterprofile

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistrytest "k8s.io/apiserver/pkg/registry/generic/testing"
	etcd3testing "k8s.io/apiserver/pkg/storage/etcd3/testing"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/registry/generic/registrytest"
)

func newStorage(t *testing.T) *Storage {
	t.Helper()
	_, etcd := etcd3testing.NewUnsecuredEtcd3TestClientServer(t)
	scheme := registrytest.Scheme()
	s, err := NewStorage(scheme, registrytest.Options(etcd.Transport, scheme, v1alpha1.SchemeGroupVersion, "clusterprofiles"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.ClusterProfile.Destroy)
	registrytest.WaitUntilReady(t, s.ClusterProfile.Store)
	return s
}

func requestContext(s *Storage, subresources ...string) context.Context {
	return genericregistrytest.NewClusterScopeContext(s.ClusterProfile.Store, subresources...)
}

func valid() *openmcp.ClusterProfile {
	return &openmcp.ClusterProfile{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"env": "x"}},
		Spec: openmcp.ClusterProfileSpec{
			ProviderRef: openmcp.LocalObjectReference{Name: "kind"}, ProviderConfigRef: openmcp.LocalObjectReference{Name: "config"},
			SupportedVersions: []openmcp.SupportedK8sVersion{},
		},
	}
}

func change(f func(*openmcp.ClusterProfile)) genericregistrytest.UpdateFunc {
	return func(object runtime.Object) runtime.Object {
		f(object.(*openmcp.ClusterProfile))
		return object
	}
}

func TestStorage_Create(t *testing.T) {
	unnamed, invalid := valid(), valid()
	unnamed.Name = ""
	change(func(o *openmcp.ClusterProfile) { o.Spec.SupportedVersions = nil })(invalid)
	genericregistrytest.New(t, newStorage(t).ClusterProfile.Store).ClusterScope().TestCreate(valid(), unnamed, invalid)
}

func TestStorage_Update(t *testing.T) {
	genericregistrytest.New(t, newStorage(t).ClusterProfile.Store).ClusterScope().TestUpdate(valid(),
		change(func(o *openmcp.ClusterProfile) { o.Spec.ProviderRef.Name = "other" }),
		change(func(o *openmcp.ClusterProfile) { o.Spec.ProviderRef.Name = "" }),
	)
}

func TestStorage_Delete(t *testing.T) {
	genericregistrytest.New(t, newStorage(t).ClusterProfile.Store).ClusterScope().ReturnDeletedObject().TestDelete(valid())
}

func TestStorage_Get(t *testing.T) {
	genericregistrytest.New(t, newStorage(t).ClusterProfile.Store).ClusterScope().TestGet(valid())
}

func TestStorage_List(t *testing.T) {
	genericregistrytest.New(t, newStorage(t).ClusterProfile.Store).ClusterScope().TestList(valid())
}

func TestStorage_Watch(t *testing.T) {
	genericregistrytest.New(t, newStorage(t).ClusterProfile.Store).ClusterScope().TestWatch(valid(),
		[]labels.Set{{"env": "x"}}, []labels.Set{{"env": "z"}},
		[]fields.Set{{"metadata.name": "a"}, {"spec.providerRef.name": "kind"}, {"spec.providerConfigRef.name": "config"}},
		[]fields.Set{{"metadata.name": "b"}, {"spec.providerRef.name": "gardener"}, {"spec.providerConfigRef.name": "kind"}},
	)
}

func TestGeneration_FollowsTheSpec(t *testing.T) {
	s := newStorage(t)
	spoilt := valid()
	spoilt.Generation = 7
	created := registrytest.Create(t, requestContext(s), s.ClusterProfile, spoilt)
	labelled := created.DeepCopy()
	labelled.Labels["env"], labelled.Generation = "z", 9
	labelled, err := registrytest.Update(requestContext(s), s.ClusterProfile, labelled)
	if err != nil || created.Generation != 1 || labelled.Generation != 1 {
		t.Fatalf("generation %d when created, %d when labelled, %v", created.Generation, labelled.Generation, err)
	}
	changed := labelled.DeepCopy()
	change(func(o *openmcp.ClusterProfile) { o.Spec.ProviderRef.Name = "other" })(changed)
	if changed, err = registrytest.Update(requestContext(s), s.ClusterProfile, changed); err != nil || changed.Generation != 2 {
		t.Errorf("another spec: generation %d, %v", changed.Generation, err)
	}
}

func TestTable_Columns(t *testing.T) {
	o := valid()
	table, err := tableConvertor.ConvertToTable(t.Context(), o, nil)
	if err != nil {
		t.Fatal(err)
	}
	var columns []string
	for _, column := range table.ColumnDefinitions {
		columns = append(columns, fmt.Sprintf("%s/%d", column.Name, column.Priority))
		if column.Description == "" {
			t.Errorf("%s has no description", column.Name)
		}
	}
	if got := fmt.Sprint(columns, table.Rows[0].Cells); got != `[Name/0 Provider/0 Config/0] [a kind config]` {
		t.Errorf("got %s", got)
	}
}

func TestStorage_ShortNames(t *testing.T) {
	if got := strings.Join(newStorage(t).ClusterProfile.ShortNames(), " "); got != "cprof profile" {
		t.Errorf("got %q", got)
	}
}
