// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/access"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
)

// lender is a provider that withdraws its cluster.
type lender struct {
	clusterprovider.Provider
	why   string
	asked error
	// removed reports whether the cluster of a Cluster that is being deleted is gone.
	removed bool
	// former had the cluster before, and is gone.
	former types.UID
	// host of its cluster, if that responds.
	host string
	// reached is called when its cluster is reached.
	reached func(ctx context.Context)
}

func (l *lender) Withdrawn(context.Context, *v1alpha1.Cluster) (string, error) { return l.why, l.asked }

func (l *lender) Connect(ctx context.Context, _ *v1alpha1.Cluster) (*rest.Config, error) {
	if l.reached != nil {
		l.reached(ctx)
	}
	if l.host != "" {
		return &rest.Config{Host: l.host}, nil
	}
	return nil, errors.New("the cluster does not respond")
}

func newReconciler(provider clusterprovider.Provider, server client.Client) *Reconciler {
	own, recorder := hub.Identity{Name: "p", Environment: "e"}, &events.FakeRecorder{}
	return New(own, provider, server, recorder, access.New(own, provider, server, server, recorder))
}

func TestWithdraw_NotDuringGrantAndBeforeRevocation(t *testing.T) {
	object := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "blue", UID: "blue-1"}}
	server := fake.NewClientBuilder().WithScheme(hub.Scheme).WithObjects(object).
		WithIndex(&v1alpha1.AccessRequest{}, hub.ByCluster, func(client.Object) []string { return []string{"teams/blue"} }).Build()
	deleted := object.DeepCopy()
	deleted.DeletionTimestamp, deleted.Finalizers = new(metav1.Now()), []string{"e.p.clusters.openmcp.cloud/cluster"}
	provider, released := &lender{}, 0
	r := newReconciler(provider, server)
	state := clusterprovider.State{Withdrawn: true, Release: func(context.Context) error { released++; return nil }}

	given, _ := r.access.Giving.Begin(object.UID)
	if result, err := r.withdraw(t.Context(), object, state); err != nil || result.RequeueAfter != hub.RetryInterval || released > 0 {
		t.Errorf("while access is being granted: %+v, %v, released %d times", result, err, released)
	}
	if result, err := r.remove(t.Context(), deleted, clusterprovider.Profile{}); err != nil || result.RequeueAfter != hub.RetryInterval {
		t.Errorf("a Cluster is released while access is being granted: %+v, %v", result, err)
	}
	given()
	given()
	reached := 0
	provider.reached = func(ctx context.Context) {
		reached++
		if _, ok := ctx.Deadline(); !ok {
			t.Error("revoking has no timeout, and blocks grants")
		}
		if _, ok := r.access.Giving.Begin(object.UID); ok {
			t.Error("access is granted concurrently")
		}
	}
	if _, err := r.withdraw(t.Context(), object, state); err == nil || released > 0 || reached != 1 {
		t.Errorf("while the cluster does not respond: %v, released %d times, reached %d times", err, released, reached)
	}
}

// Ensure returns the state of a cluster that is withdrawn.
func (l *lender) Ensure(context.Context, *v1alpha1.Cluster, clusterprovider.Profile) (clusterprovider.State, error) {
	return clusterprovider.State{Withdrawn: l.why != "", Former: l.former, Release: func(context.Context) error { return nil }}, nil
}

// TestWithdraw_BeforeClusterIsReassigned: a Cluster whose finalizer was removed by force has left all access in its cluster, which
// the next Cluster must not inherit.
func TestWithdraw_BeforeClusterIsReassigned(t *testing.T) {
	object := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "blue", UID: "blue-1"}}
	object.Spec.Profile, object.Status.Phase = "e.p.c", v1alpha1.StatusPhaseReady
	profile := &v1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Name: "e.p.c"}}
	profile.Spec.ProviderRef.Name = "p"
	ar := &v1alpha1.AccessRequest{ObjectMeta: metav1.ObjectMeta{
		Namespace: "teams", Name: "ann", UID: "1", Generation: 1, Finalizers: []string{"e.p.clusters.openmcp.cloud/accessrequest"},
	}}
	ar.Spec.ClusterRef = &v1alpha1.ObjectReference{Namespace: "teams", Name: "blue"}
	ar.Status.Phase, ar.Status.SecretRef = v1alpha1.REQUEST_GRANTED, &v1alpha1.LocalObjectReference{Name: "ann.kubeconfig"}
	server := fake.NewClientBuilder().WithScheme(hub.Scheme).WithObjects(ar, object, profile).WithStatusSubresource(ar, object).
		WithIndex(&v1alpha1.AccessRequest{}, hub.ByCluster, func(client.Object) []string { return []string{"teams/blue"} }).Build()
	provider := &lender{former: "gone"}
	r := newReconciler(provider, server)
	name := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)}
	given, _ := r.access.Giving.Begin("gone")
	if result, err := r.Reconcile(t.Context(), name); err != nil || result.RequeueAfter != hub.RetryInterval {
		t.Errorf("while access is being granted for it: %+v, %v", result, err)
	}
	given()
	of := types.UID("")
	provider.reached = func(context.Context) {
		if _, ok := r.access.Giving.Begin("gone"); !ok {
			of = "gone"
		}
	}
	if _, err := r.Reconcile(t.Context(), name); err == nil || !strings.Contains(err.Error(), "revoking the access") || of != "gone" {
		t.Errorf("the access of the previous Cluster is not revoked: %v", err)
	}
	// The requests for which access was granted may be for a Cluster with the same name.
	if err := server.Get(t.Context(), client.ObjectKeyFromObject(ar), ar); err != nil || ar.Status.IsGranted() {
		t.Errorf("%+v, %v", ar.Status, err)
	}
}

// TestWithdraw_FromIgnoredCluster: a user who may annotate a Cluster must not keep its cluster that way.
func TestWithdraw_FromIgnoredCluster(t *testing.T) {
	object := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: "teams", Name: "blue", UID: "blue-1", Annotations: map[string]string{v1alpha1.OperationAnnotation: "ignore"},
	}}
	object.Spec.Profile = "e.p.c"
	profile := &v1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Name: "e.p.c"}}
	profile.Spec.ProviderRef.Name = "p"
	server := fake.NewClientBuilder().WithScheme(hub.Scheme).WithObjects(object, profile).WithStatusSubresource(object).
		WithIndex(&v1alpha1.AccessRequest{}, hub.ByCluster, func(client.Object) []string { return []string{"teams/blue"} }).Build()
	provider := &lender{}
	r := newReconciler(provider, server)
	name := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)}
	if result, err := r.Reconcile(t.Context(), name); err != nil || result.RequeueAfter == 0 {
		t.Errorf("one that has its cluster: %+v, %v", result, err)
	}
	provider.why = "it is not yours"
	if _, err := r.Reconcile(t.Context(), name); err == nil || !strings.Contains(err.Error(), "revoking the access") {
		t.Errorf("no access is revoked: %v", err)
	}
	if err := server.Get(t.Context(), name.NamespacedName, object); err != nil || len(object.Finalizers)+len(object.Status.Conditions) > 0 {
		t.Errorf("what is to be ignored is changed: %+v, %v", object, err)
	}
}

// Remove reports whether the cluster is gone.
func (l *lender) Remove(context.Context, *v1alpha1.Cluster, clusterprovider.Profile) (gone bool, err error) {
	return l.removed, nil
}

func TestRemove_HoldsClusterUntilProviderRemovesIt(t *testing.T) {
	object := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "blue", UID: "blue-1",
		DeletionTimestamp: new(metav1.Now()), Finalizers: []string{"e.p.clusters.openmcp.cloud/cluster"}}}
	server := fake.NewClientBuilder().WithScheme(hub.Scheme).WithObjects(object).WithStatusSubresource(object).
		WithIndex(&v1alpha1.AccessRequest{}, hub.ByCluster, func(client.Object) []string { return []string{"teams/blue"} }).Build()
	provider := &lender{}
	r := newReconciler(provider, server)
	for _, removed := range []bool{false, true} {
		provider.removed = removed
		have := &v1alpha1.Cluster{}
		if err := server.Get(t.Context(), client.ObjectKeyFromObject(object), have); err != nil {
			t.Fatal(err)
		}
		if _, err := r.remove(t.Context(), have, clusterprovider.Profile{}); err != nil {
			t.Fatal(err)
		}
		err := server.Get(t.Context(), client.ObjectKeyFromObject(object), have)
		if gone := apierrors.IsNotFound(err); gone != removed {
			t.Errorf("removed by its provider: %t, gone: %t, %v", removed, gone, err)
		}
	}
}
