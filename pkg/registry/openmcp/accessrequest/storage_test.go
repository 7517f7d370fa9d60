// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package accessrequest

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
	s, err := NewStorage(scheme, registrytest.Options(etcd.Transport, scheme, v1alpha1.SchemeGroupVersion, "accessrequests"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.AccessRequest.Destroy)
	registrytest.WaitUntilReady(t, s.AccessRequest.Store)
	return s
}

func requestContext(s *Storage, subresources ...string) context.Context {
	return genericregistrytest.NewNamespaceScopeContext(s.AccessRequest.Store, "test", subresources...)
}

func valid() *openmcp.AccessRequest {
	return &openmcp.AccessRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: "test", Name: "a", Labels: map[string]string{"env": "x"}},
		Spec: openmcp.AccessRequestSpec{
			Token: &openmcp.TokenConfig{}, ClusterRef: &openmcp.ObjectReference{Namespace: "b", Name: "c"},
		},
	}
}

func change(f func(*openmcp.AccessRequest)) genericregistrytest.UpdateFunc {
	return func(object runtime.Object) runtime.Object {
		f(object.(*openmcp.AccessRequest))
		return object
	}
}

func TestStorage_Create(t *testing.T) {
	unnamed, invalid := valid(), valid()
	unnamed.Name = ""
	change(func(o *openmcp.AccessRequest) { o.Spec.Token = nil })(invalid)
	genericregistrytest.New(t, newStorage(t).AccessRequest.Store).TestCreate(valid(), unnamed, invalid)
}

func TestStorage_Update(t *testing.T) {
	genericregistrytest.New(t, newStorage(t).AccessRequest.Store).TestUpdate(valid(),
		change(func(o *openmcp.AccessRequest) { o.Spec.TTL = &metav1.Duration{Duration: 1} }),
		change(func(o *openmcp.AccessRequest) { o.Spec.ClusterRef.Name = "other" }),
	)
}

func TestStorage_Delete(t *testing.T) {
	genericregistrytest.New(t, newStorage(t).AccessRequest.Store).ReturnDeletedObject().TestDelete(valid())
}

func TestStorage_Get(t *testing.T) {
	genericregistrytest.New(t, newStorage(t).AccessRequest.Store).TestGet(valid())
}

func TestStorage_List(t *testing.T) {
	genericregistrytest.New(t, newStorage(t).AccessRequest.Store).TestList(valid())
}

func TestStorage_Watch(t *testing.T) {
	genericregistrytest.New(t, newStorage(t).AccessRequest.Store).TestWatch(valid(),
		[]labels.Set{{"env": "x"}}, []labels.Set{{"env": "z"}},
		[]fields.Set{{"metadata.name": "a"}, {"status.phase": ""}, {"spec.clusterRef.name": "c", "spec.clusterRef.namespace": "b"}},
		[]fields.Set{{"metadata.name": "b"}, {"status.phase": "Granted"}, {"spec.clusterRef.name": "b"}},
	)
}

func TestGeneration_FollowsTheSpec(t *testing.T) {
	s := newStorage(t)
	spoilt := valid()
	spoilt.Generation = 7
	created := registrytest.Create(t, requestContext(s), s.AccessRequest, spoilt)
	labelled := created.DeepCopy()
	labelled.Labels["env"], labelled.Generation = "z", 9
	labelled, err := registrytest.Update(requestContext(s), s.AccessRequest, labelled)
	if err != nil || created.Generation != 1 || labelled.Generation != 1 {
		t.Fatalf("generation %d when created, %d when labelled, %v", created.Generation, labelled.Generation, err)
	}
	changed := labelled.DeepCopy()
	change(func(o *openmcp.AccessRequest) { o.Spec.TTL = &metav1.Duration{Duration: 1} })(changed)
	if changed, err = registrytest.Update(requestContext(s), s.AccessRequest, changed); err != nil || changed.Generation != 2 {
		t.Errorf("another spec: generation %d, %v", changed.Generation, err)
	}
}

func TestStatus_ChangesTheStatusAndNothingElse(t *testing.T) {
	s := newStorage(t)
	written := valid()
	written.Status.Phase = "Granted"
	old := registrytest.Create(t, requestContext(s), s.AccessRequest, written)
	if old.Status.Phase != "" {
		t.Errorf("it is created as %s", old.Status.Phase)
	}
	sent := old.DeepCopy()
	registrytest.Spoil(sent)
	change(func(o *openmcp.AccessRequest) { o.Spec.TTL = &metav1.Duration{Duration: 1} })(sent)
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
	relabelled.Labels["env"], relabelled.Status = "z", openmcp.AccessRequestStatus{}
	relabelled, err = registrytest.Update(requestContext(s), s.AccessRequest, relabelled)
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
	spec, status := fieldpath.MakePathOrDie("spec", "ttl"), fieldpath.MakePathOrDie("status", "phase")
	for owned, of := range map[string]rest.ResetFieldsStrategy{spec.String(): s.AccessRequest, status.String(): s.Status} {
		got := fieldpath.NewSet(spec, status).RecursiveDifference(of.GetResetFields()["clusters.openmcp.cloud/v1alpha1"])
		if got.Size() != 1 || strings.TrimSpace(got.String()) != owned {
			t.Errorf("an applier owns %s, want %s", got, owned)
		}
	}
}

func TestTable_Columns(t *testing.T) {
	o := valid()
	o.Status.Phase = "Denied"
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
	if got := strings.Join(columns, " "); got != "Name/0 Phase/0 Cluster/0 Cluster-NS/0 Reason/0 Message/1" {
		t.Errorf("the columns are %s", got)
	}
}

func TestTable_SaysWhatIsMissing(t *testing.T) {
	condition := func(conditionType string, status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: conditionType, Status: status, Reason: "Of" + conditionType, Message: "words"}
	}
	granted := []metav1.Condition{condition("Prepared", "True"), condition("AccessReady", "True")}
	for want, o := range map[string]*openmcp.AccessRequest{
		"a,,,,,":               {},
		"a,Granted,blue,ns,,":  {Spec: openmcp.AccessRequestSpec{ClusterRef: &openmcp.ObjectReference{Namespace: "ns", Name: "blue"}}, Status: openmcp.AccessRequestStatus{Status: openmcp.Status{Phase: "Granted", Conditions: granted}}},
		"a,Terminating,,,,":    {ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: new(metav1.Now())}, Status: openmcp.AccessRequestStatus{Status: openmcp.Status{Phase: "Granted", Conditions: granted}}},
		"a,Denied,,,OfX,words": {Status: openmcp.AccessRequestStatus{Status: openmcp.Status{Phase: "Denied", Conditions: []metav1.Condition{condition("Prepared", "True"), condition("X", "False")}}}},
		"a,Pending,,,OfPrepared,words": {Status: openmcp.AccessRequestStatus{Status: openmcp.Status{Phase: "Pending", Conditions: []metav1.Condition{
			condition("AccessReady", "False"), condition("Prepared", "False"), condition("X", "False")}}}},
	} {
		o.Name = "a"
		var cells []string
		for _, cell := range tableConvertor.Cells(o) {
			cells = append(cells, fmt.Sprint(cell))
		}
		if got := strings.Join(cells, ","); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestStorage_ShortNames(t *testing.T) {
	if got := strings.Join(newStorage(t).AccessRequest.ShortNames(), " "); got != "ar areq" {
		t.Errorf("got %q", got)
	}
}
