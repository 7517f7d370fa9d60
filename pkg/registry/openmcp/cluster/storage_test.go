// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistrytest "k8s.io/apiserver/pkg/registry/generic/testing"
	"k8s.io/apiserver/pkg/registry/rest"
	etcd3testing "k8s.io/apiserver/pkg/storage/etcd3/testing"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/registry/generic/registrytest"
)

func newStorage(t *testing.T) *Storage {
	t.Helper()
	_, etcd := etcd3testing.NewUnsecuredEtcd3TestClientServer(t)
	scheme := registrytest.Scheme()
	s, err := NewStorage(scheme, registrytest.Options(etcd.Transport, scheme, v1alpha1.SchemeGroupVersion, "clusters"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Cluster.Destroy)
	registrytest.WaitUntilReady(t, s.Cluster.Store)
	return s
}

func requestContext(s *Storage, subresources ...string) context.Context {
	return genericregistrytest.NewNamespaceScopeContext(s.Cluster.Store, "test", subresources...)
}

func valid() *openmcp.Cluster {
	return &openmcp.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "test", Name: "a", Labels: map[string]string{"env": "x"}},
		Spec:       openmcp.ClusterSpec{Profile: "kind", Purposes: []string{"mcp", "\"x"}, Tenancy: openmcp.TENANCY_SHARED},
	}
}

func change(f func(*openmcp.Cluster)) genericregistrytest.UpdateFunc {
	return func(object runtime.Object) runtime.Object {
		f(object.(*openmcp.Cluster))
		return object
	}
}

func TestStorage_Create(t *testing.T) {
	unnamed, invalid := valid(), valid()
	unnamed.Name = ""
	change(func(o *openmcp.Cluster) { o.Spec.Tenancy = "" })(invalid)
	genericregistrytest.New(t, newStorage(t).Cluster.Store).TestCreate(valid(), unnamed, invalid)
}

func TestStorage_Update(t *testing.T) {
	genericregistrytest.New(t, newStorage(t).Cluster.Store).TestUpdate(valid(),
		change(func(o *openmcp.Cluster) { o.Spec.Tenancy = openmcp.TENANCY_EXCLUSIVE }),
		change(func(o *openmcp.Cluster) { o.Spec.Profile = "other" }),
	)
}

func TestStorage_Delete(t *testing.T) {
	genericregistrytest.New(t, newStorage(t).Cluster.Store).ReturnDeletedObject().TestDelete(valid())
}

func TestStorage_Get(t *testing.T) {
	genericregistrytest.New(t, newStorage(t).Cluster.Store).TestGet(valid())
}

func TestStorage_List(t *testing.T) {
	store := newStorage(t).Cluster.Store
	// The suite does not know columns of priority 10, which upstream has.
	store.TableConvertor = rest.NewDefaultTableConvertor(openmcp.Resource("clusters"))
	genericregistrytest.New(t, store).TestList(valid())
}

func TestStorage_Watch(t *testing.T) {
	genericregistrytest.New(t, newStorage(t).Cluster.Store).TestWatch(valid(),
		[]labels.Set{{"env": "x"}}, []labels.Set{{"env": "z"}},
		[]fields.Set{{"metadata.name": "a"}, {"spec.profile": "kind"}},
		[]fields.Set{{"metadata.name": "b"}, {"spec.profile": "other"}},
	)
}

func TestGeneration_FollowsTheSpec(t *testing.T) {
	s := newStorage(t)
	spoilt := valid()
	spoilt.Generation = 7
	created := registrytest.Create(t, requestContext(s), s.Cluster, spoilt)
	labelled := created.DeepCopy()
	labelled.Labels["env"], labelled.Generation = "z", 9
	labelled, err := registrytest.Update(requestContext(s), s.Cluster, labelled)
	if err != nil || created.Generation != 1 || labelled.Generation != 1 {
		t.Fatalf("generation %d when created, %d when labelled, %v", created.Generation, labelled.Generation, err)
	}
	changed := labelled.DeepCopy()
	change(func(o *openmcp.Cluster) { o.Spec.Tenancy = openmcp.TENANCY_EXCLUSIVE })(changed)
	if changed, err = registrytest.Update(requestContext(s), s.Cluster, changed); err != nil || changed.Generation != 2 {
		t.Errorf("another spec: generation %d, %v", changed.Generation, err)
	}
}

func TestStatus_ChangesTheStatusAndNothingElse(t *testing.T) {
	s := newStorage(t)
	written := valid()
	written.Status.Phase = "Granted"
	old := registrytest.Create(t, requestContext(s), s.Cluster, written)
	if old.Status.Phase != "" {
		t.Errorf("it is created as %s", old.Status.Phase)
	}
	sent := old.DeepCopy()
	registrytest.Spoil(sent)
	change(func(o *openmcp.Cluster) { o.Spec.Tenancy = openmcp.TENANCY_EXCLUSIVE })(sent)
	sent.Status.Status = openmcp.Status{ObservedGeneration: 1, Phase: "Granted", Conditions: []metav1.Condition{{
		Type: "Ready", Status: "True", Reason: "Because", LastTransitionTime: metav1.Unix(1, 0),
	}}}
	updated, err := registrytest.Update(requestContext(s, "status"), s.Status, sent)
	if err != nil {
		t.Fatal(err)
	}
	registrytest.WantSameMeta(t, updated, old)
	if !equality.Semantic.DeepEqual(updated.Spec, old.Spec) || !equality.Semantic.DeepEqual(updated.Status, sent.Status) {
		t.Errorf("became %+v", updated)
	}
	relabelled := updated.DeepCopy()
	relabelled.Labels["env"], relabelled.Status = "z", openmcp.ClusterStatus{}
	relabelled, err = registrytest.Update(requestContext(s), s.Cluster, relabelled)
	if err != nil || !equality.Semantic.DeepEqual(relabelled.Status, updated.Status) {
		t.Errorf("after an update: %+v, %v", relabelled, err)
	}
	relabelled.Status.Conditions[0].Reason = ""
	if _, err := registrytest.Update(requestContext(s, "status"), s.Status, relabelled); !apierrors.IsInvalid(err) {
		t.Errorf("a condition without a reason: got %v", err)
	}
}

func TestResetFields_AreThoseOfTheOtherHalf(t *testing.T) {
	s := newStorage(t)
	spec, status := fieldpath.MakePathOrDie("spec", "tenancy"), fieldpath.MakePathOrDie("status", "phase")
	for owned, of := range map[string]rest.ResetFieldsStrategy{spec.String(): s.Cluster, status.String(): s.Status} {
		got := fieldpath.NewSet(spec, status).RecursiveDifference(of.GetResetFields()["clusters.openmcp.cloud/v1alpha1"])
		if got.Size() != 1 || strings.TrimSpace(got.String()) != owned {
			t.Errorf("an applier owns %s, want %s", got, owned)
		}
	}
}

func TestTable_Columns(t *testing.T) {
	o := valid()
	o.Labels = map[string]string{"clusters.openmcp.cloud/k8sversion": "1.33.3", "clusters.openmcp.cloud/provider": "kind"}
	o.Annotations = map[string]string{"clusters.openmcp.cloud/providerinfo": "info"}
	o.Status.Phase = "Ready"
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
	if got := fmt.Sprint(columns, table.Rows[0].Cells); got != `[Name/0 Purposes/0 Phase/0 Version/0 Provider/0 Profile/10 Info/10 Age/0] [a ["mcp","\"x"] Ready 1.33.3 kind kind info <unknown>]` {
		t.Errorf("got %s", got)
	}
}

func TestStorage_ShortNames(t *testing.T) {
	if got := strings.Join(newStorage(t).Cluster.ShortNames(), " "); got != "" {
		t.Errorf("got %q", got)
	}
}
