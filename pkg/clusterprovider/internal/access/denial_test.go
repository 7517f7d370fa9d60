// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
)

// withOperator is a hub where openMCP's operator prepares AccessRequests: it sets every request that it may hand over to Pending.
type withOperator struct {
	*Reconciler
	t        *testing.T
	hub      client.Client
	clusters *connects
}

func newWithOperator(t *testing.T, change func(*v1alpha1.AccessRequest)) *withOperator {
	t.Helper()
	o := &withOperator{t: t, clusters: &connects{}}
	profile := &v1alpha1.ClusterProfile{
		ObjectMeta: metav1.ObjectMeta{Name: "e.p.default"},
		Spec:       v1alpha1.ClusterProfileSpec{ProviderRef: v1alpha1.LocalObjectReference{Name: "p"}},
	}
	cluster := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "blue", UID: "blue-1"}}
	cluster.Spec.Profile, cluster.Status.Phase = profile.Name, v1alpha1.StatusPhaseReady
	ar := request("a", "a-1")
	ar.Generation, ar.Labels = 1, map[string]string{v1alpha1.ProviderLabel: "p", v1alpha1.ProfileLabel: profile.Name}
	ar.Spec = v1alpha1.AccessRequestSpec{
		ClusterRef: &v1alpha1.ObjectReference{Namespace: "teams", Name: "blue"}, Token: &v1alpha1.TokenConfig{},
	}
	ar.Status.Phase, ar.Status.ObservedGeneration = v1alpha1.REQUEST_DENIED, 1
	change(ar)
	o.hub = fake.NewClientBuilder().WithScheme(hub.Scheme).WithObjects(profile, cluster, ar).WithStatusSubresource(&v1alpha1.AccessRequest{}).Build()
	o.restart()
	o.sees(nil)
	return o
}

// restart replaces the provider by one that knows only the objects of the hub.
func (o *withOperator) restart() {
	o.Reconciler = New(hub.Identity{Name: "p", Environment: "e"}, o.clusters, o.hub, o.hub, &events.FakeRecorder{})
}

func (o *withOperator) request() *v1alpha1.AccessRequest {
	o.t.Helper()
	ar := &v1alpha1.AccessRequest{}
	if err := o.hub.Get(o.t.Context(), types.NamespacedName{Namespace: "teams", Name: "a"}, ar); err != nil {
		o.t.Fatal(err)
	}
	return ar
}

// sees passes a version of the request to the provider's predicates, as its watch does, and reports whether it would be reconciled.
func (o *withOperator) sees(before *v1alpha1.AccessRequest) bool {
	o.t.Helper()
	if before == nil {
		return o.changed().Create(event.CreateEvent{Object: o.request()})
	}
	return o.changed().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: o.request()})
}

// edit changes the request as the requester does, and as the operator does afterwards.
func (o *withOperator) edit(change func(*v1alpha1.AccessRequest)) bool {
	o.t.Helper()
	before, ar := o.request(), o.request()
	ar.Generation++
	change(ar)
	if err := o.hub.Update(o.t.Context(), ar); err != nil {
		o.t.Fatal(err)
	}
	ar.Labels = map[string]string{v1alpha1.ProviderLabel: "p", v1alpha1.ProfileLabel: "e.p.default"}
	ar.Spec.ClusterRef = &v1alpha1.ObjectReference{Namespace: "teams", Name: "blue"}
	if err := o.hub.Update(o.t.Context(), ar); err != nil {
		o.t.Fatal(err)
	}
	ar.Status.Phase, ar.Status.ObservedGeneration = v1alpha1.REQUEST_PENDING, ar.Generation
	if err := o.hub.Status().Update(o.t.Context(), ar); err != nil {
		o.t.Fatal(err)
	}
	return o.sees(before)
}

func (o *withOperator) look() {
	o.t.Helper()
	_, _ = o.Reconcile(o.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "teams", Name: "a"}})
}

func (o *withOperator) staysDenied(when string) {
	o.t.Helper()
	ar := o.request()
	if !ar.Status.IsDenied() || ar.Status.ObservedGeneration != ar.Generation || !meta.IsStatusConditionTrue(ar.Status.Conditions, "Denied") {
		o.t.Errorf("%s, it is %+v", when, ar.Status)
	}
	if o.clusters.times > 0 {
		o.t.Fatalf("%s, access was about to be given", when)
	}
}

func nothing(*v1alpha1.AccessRequest) {}

// TestDenial_IsFinal: a manual denial is not undone by a change of the request, after which openMCP's operator resets the phase.
func TestDenial_IsFinal(t *testing.T) {
	for name, changes := range map[string][2]func(*v1alpha1.AccessRequest){
		"another spec": {nothing, func(ar *v1alpha1.AccessRequest) {
			ar.Spec.Token.RoleRefs = []v1alpha1.RoleRef{{Name: "x", Kind: "ClusterRole"}}
		}},
		"without labels till then":   {func(ar *v1alpha1.AccessRequest) { ar.Labels = nil }, nothing},
		"the labels of another":      {func(ar *v1alpha1.AccessRequest) { ar.Labels[v1alpha1.ProviderLabel] = "other" }, nothing},
		"for no Cluster till then":   {func(ar *v1alpha1.AccessRequest) { ar.Labels, ar.Spec.ClusterRef = nil, nil }, nothing},
		"labels removed with a spec": {nothing, func(ar *v1alpha1.AccessRequest) { ar.Labels = nil }},
		"reconciled when it is ignored": {func(ar *v1alpha1.AccessRequest) {
			ar.Annotations = map[string]string{v1alpha1.OperationAnnotation: v1alpha1.OperationAnnotationValueIgnore}
		}, func(ar *v1alpha1.AccessRequest) { ar.Annotations = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			o := newWithOperator(t, changes[0])
			o.look()
			if !o.edit(changes[1]) {
				t.Error("it is not reconciled")
			}
			o.look()
			o.staysDenied("after a change")
			// Nor is it by the next process, which has not observed the phase.
			o.edit(nothing)
			o.restart()
			o.sees(nil)
			o.look()
			o.staysDenied("after a restart")
		})
	}
}

// TestDenial_IsObservedAfterReset: the operator may be faster than the provider, which then finds the request Pending.
func TestDenial_IsObservedAfterReset(t *testing.T) {
	o := newWithOperator(t, nothing)
	o.edit(nothing)
	o.edit(nothing)
	o.look()
	o.staysDenied("reset before it was reconciled")
}

// TestDenial_IsRecordedDuringRevocation: granted access is revoked, however often the operator sets the request to Pending until then.
func TestDenial_IsRecordedDuringRevocation(t *testing.T) {
	o := newWithOperator(t, func(ar *v1alpha1.AccessRequest) { ar.Finalizers = []string{"e.p.clusters.openmcp.cloud/accessrequest"} })
	for range 3 {
		o.look()
		condition := meta.FindStatusCondition(o.request().Status.Conditions, clusterprovider.ConditionAccess)
		if ar := o.request(); !ar.Status.IsDenied() || condition == nil || condition.Message != "revoking access: reaching the Cluster 'teams/blue': out of reach" {
			t.Errorf("it is %+v", ar.Status)
		}
		o.edit(nothing)
		o.restart()
		o.sees(nil)
	}
}

// TestDenial_ReportsAccessDespiteUnreadyCluster: while its cluster does not respond, a denied request has a condition that access is not ready. The
// access exists nevertheless, and the requester must not keep it by removing the finalizer: the provider restores the finalizer.
func TestDenial_ReportsAccessDespiteUnreadyCluster(t *testing.T) {
	o := newWithOperator(t, func(ar *v1alpha1.AccessRequest) {
		ar.Finalizers = []string{"e.p.clusters.openmcp.cloud/accessrequest"}
		ar.Status.SecretRef = &v1alpha1.LocalObjectReference{Name: hub.SecretName(ar.Name)}
		hub.SetCondition(&ar.Status.Status, 1, metav1.Condition{Type: clusterprovider.ConditionAccess, Status: metav1.ConditionTrue})
	})
	o.look()
	before, ar := o.request(), o.request()
	if meta.IsStatusConditionTrue(ar.Status.Conditions, clusterprovider.ConditionAccess) || len(ar.Finalizers) != 1 {
		t.Fatalf("its access was revoked: %+v", ar)
	}
	ar.Finalizers = nil
	if err := o.hub.Update(t.Context(), ar); err != nil {
		t.Fatal(err)
	}
	if !o.sees(before) {
		t.Error("the removal of its finalizer causes no reconcile")
	}
	o.look()
	if !o.Begun(o.request()) {
		t.Error("its access is not revoked")
	}
	// A request without access gets no finalizer.
	o = newWithOperator(t, nothing)
	o.look()
	if o.Begun(o.request()) {
		t.Error("a request is held that never had access")
	}
}

// TestDenial_OfOthersIsIgnored: requests of other providers, and those that were not denied, are not changed.
func TestDenial_OfOthersIsIgnored(t *testing.T) {
	o := newWithOperator(t, func(ar *v1alpha1.AccessRequest) {
		ar.Labels[v1alpha1.ProviderLabel] = "other"
		ar.Spec.ClusterRef.Name = "green"
	})
	before := o.request().ResourceVersion
	o.look()
	if ar := o.request(); ar.ResourceVersion != before {
		t.Errorf("it is %+v", ar.Status)
	}
	o = newWithOperator(t, func(ar *v1alpha1.AccessRequest) { ar.Status.Phase = v1alpha1.REQUEST_PENDING })
	o.look()
	if o.clusters.times != 1 {
		t.Errorf("what was not denied is not granted: %+v", o.request().Status)
	}
	// One that is deleted is handed over by another phase.
	o = newWithOperator(t, func(ar *v1alpha1.AccessRequest) {
		ar.DeletionTimestamp, ar.Finalizers = new(metav1.Now()), []string{"example.com/other"}
	})
	o.look()
	if ar := o.request(); len(ar.Status.Conditions) > 0 {
		t.Errorf("it is %+v", ar.Status)
	}
	o.changed().Delete(event.DeleteEvent{Object: o.request()})
	if o.denials.has(&v1alpha1.AccessRequest{ObjectMeta: metav1.ObjectMeta{UID: "a-1"}}) {
		t.Error("it is remembered for ever")
	}
}
