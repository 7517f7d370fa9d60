// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterprotection prevents the deletion of a Cluster of clusters.openmcp.cloud while there are AccessRequests for it, so that its
// provider revokes the access while the cluster still exists.
//
// It uses a finalizer, as Kubernetes does for volumes that pods use. The controller that prepares AccessRequests calls Protect before it hands one
// to a provider. The controller here does the same for AccessRequests that other programs prepare, such as openMCP's own operator. It removes the
// finalizer from a Cluster that is being deleted and has no AccessRequest, and until then reports on the Cluster what it waits for.
package clusterprotection

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

const (
	// ClusterIndex finds the AccessRequests that name a Cluster, by namespace/name.
	ClusterIndex = "spec.clusterRef"

	reasonNoAccessRequests = "NoAccessRequests" // no AccessRequest names the Cluster any more
	// maxNamed is the maximum number of AccessRequests that a message names.
	maxNamed = 10
	// settle is the delay before the AccessRequests of a Cluster are counted: many are deleted at once.
	settle = 200 * time.Millisecond
)

// Reconciler protects one Cluster.
type Reconciler struct {
	client client.Client
	live   client.Reader
}

var _ reconcile.Reconciler = &Reconciler{}

// SetupWithManager adds the controller, and the index ClusterIndex of AccessRequests.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.AccessRequest{}, ClusterIndex, ByCluster); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(name).
		For(&v1alpha1.Cluster{}).
		Watches(&v1alpha1.AccessRequest{}, clusterOf()).
		WithOptions(kit.Options(1)).
		Complete(&Reconciler{client: mgr.GetClient(), live: mgr.GetAPIReader()})
}

// ByCluster returns the value of an AccessRequest in ClusterIndex.
func ByCluster(obj client.Object) []string {
	if ref := obj.(*v1alpha1.AccessRequest).Spec.ClusterRef; ref != nil {
		return []string{ref.NamespacedName().String()}
	}
	return nil
}

// clusterOf enqueues the Cluster that an AccessRequest names, when its count may have changed.
func clusterOf() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	request := func(q queue, obj client.Object) {
		if ref := obj.(*v1alpha1.AccessRequest).Spec.ClusterRef; ref != nil {
			q.AddAfter(reconcile.Request{NamespacedName: ref.NamespacedName()}, settle)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { request(q, e.Object) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { request(q, e.Object) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			before, after := e.ObjectOld.(*v1alpha1.AccessRequest), e.ObjectNew.(*v1alpha1.AccessRequest)
			if (before.Spec.ClusterRef == nil) != (after.Spec.ClusterRef == nil) || HoldsCluster(before) != HoldsCluster(after) ||
				before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() {
				request(q, after)
			}
		},
	}
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	cluster := &v1alpha1.Cluster{}
	if err := r.client.Get(ctx, request.NamespacedName, cluster); err != nil {
		return reconcile.Result{}, kit.IgnoreGone(err)
	}
	protected := controllerutil.ContainsFinalizer(cluster, v1alpha1.AccessFinalizer)
	deleting := !cluster.DeletionTimestamp.IsZero()
	if protected != deleting {
		return reconcile.Result{}, nil // it is safe, or no AccessRequest is for it
	}
	holding, err := r.holding(ctx, r.client, client.MatchingFields{ClusterIndex: request.String()})
	if err != nil {
		return reconcile.Result{}, err
	}
	if !deleting {
		return reconcile.Result{}, r.protect(ctx, request.NamespacedName, holding)
	}
	if len(holding) == 0 {
		// The cache may not have an object that was just created, and removing the finalizer cannot be undone.
		holding, err = r.holding(ctx, r.live, client.MatchingFields{
			"spec.clusterRef.name": cluster.Name, "spec.clusterRef.namespace": cluster.Namespace,
		})
		if err != nil {
			return reconcile.Result{}, fmt.Errorf("listing the AccessRequests for the Cluster: %w", err)
		}
	}
	if done, err := r.report(ctx, cluster, holding); !done || err != nil {
		return reconcile.Result{}, kit.IgnoreStale(err)
	}
	_, err = kit.Patch(ctx, r.client, cluster, func(c *v1alpha1.Cluster) { controllerutil.RemoveFinalizer(c, v1alpha1.AccessFinalizer) })
	return reconcile.Result{}, kit.IgnoreStale(err)
}

// holding returns the AccessRequests that a Cluster waits for.
func (r *Reconciler) holding(ctx context.Context, from client.Reader, fields client.MatchingFields) ([]v1alpha1.AccessRequest, error) {
	requests := &v1alpha1.AccessRequestList{}
	err := from.List(ctx, requests, fields)
	return slices.DeleteFunc(requests.Items, func(r v1alpha1.AccessRequest) bool { return !HoldsCluster(&r) }), err
}

func (r *Reconciler) protect(ctx context.Context, cluster client.ObjectKey, holding []v1alpha1.AccessRequest) error {
	if len(holding) == 0 {
		return nil
	}
	err := Protect(ctx, r.live, r.client, cluster)
	if late := (*BeingDeletedError)(nil); errors.As(err, &late) {
		return nil
	}
	return kit.IgnoreStale(err)
}

// report sets a condition on the Cluster with what it waits for. It reports whether that is nothing.
func (r *Reconciler) report(ctx context.Context, cluster *v1alpha1.Cluster, holding []v1alpha1.AccessRequest) (bool, error) {
	condition := metav1.Condition{
		Type: v1alpha1.ConditionAccessRequestsDeleted, Status: metav1.ConditionTrue, Reason: reasonNoAccessRequests,
		ObservedGeneration: cluster.Generation,
	}
	if len(holding) > 0 {
		condition.Status, condition.Reason = metav1.ConditionFalse, v1alpha1.ReasonWaitingForAccessRequestDeletion
		condition.Message = message(cluster.Namespace, holding)
	} else if meta.FindStatusCondition(cluster.Status.Conditions, condition.Type) == nil {
		return true, nil // the Cluster has no condition that it waits
	}
	_, err := kit.PatchStatus(ctx, r.client, cluster, func(c *v1alpha1.Cluster) {
		meta.SetStatusCondition(&c.Status.Conditions, condition)
	})
	return len(holding) == 0, err
}

// message names only the AccessRequests in the Cluster's own namespace: its readers need not know of others.
func message(namespace string, holding []v1alpha1.AccessRequest) string {
	var names []string
	going := 0
	for i := range holding {
		if holding[i].Namespace == namespace {
			names = append(names, holding[i].Name)
		}
		if !holding[i].DeletionTimestamp.IsZero() {
			going++
		}
	}
	slices.Sort(names)
	names = names[:min(len(names), maxNamed)]
	if more := len(holding) - len(names); more > 0 && len(names) > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	text := fmt.Sprintf("the Cluster stays until its AccessRequests are deleted: %d", len(holding))
	if len(names) > 0 {
		text += " (" + strings.Join(names, ", ") + ")"
	}
	if going > 0 {
		text += fmt.Sprintf("; %d already being deleted, until the provider has revoked the access", going)
	}
	return text
}
