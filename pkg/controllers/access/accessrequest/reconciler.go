// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package accessrequest prepares AccessRequests: it finds the Cluster of a request and the responsible provider, labels the request so that this
// provider sees it, and until then reports on the request what is missing. It hands a request that has changed, or is being deleted, to its
// provider again. It deletes requests whose time is over, or whose ClusterRequest does not give access any more.
//
// Providers are other programs, openMCP's own among them. They find their requests by IsClusterProviderResponsibleForAccessRequest. From then on
// this controller writes neither spec nor phase of the request, until no provider has it any more.
package accessrequest

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/controllers/access/accesspolicy"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

const (
	// reporter is the name of the controller in events.
	reporter = "accessrequest"
	// The actions of events.
	actionPrepare, actionEnd = "Prepare", "End"
	// reasonEnded of an event: a request is deleted because its time is over.
	reasonEnded = "AccessEnded"

	workers = 8
)

// Options are the settings of the controller.
type Options struct {
	// Selector selects the requests that are prepared by their labels; nil selects all.
	Selector labels.Selector
	// Policy returns the current policy. If it is nil, every user may request all access.
	Policy func() *accesspolicy.Policy
	// PolicyChanges receives an event when the policy has changed; it is nil if it never does.
	PolicyChanges <-chan event.GenericEvent
}

// Reconciler prepares one AccessRequest.
type Reconciler struct {
	client client.Client
	// live does not read from the cache.
	live     client.Reader
	clock    clock.PassiveClock
	recorder events.EventRecorder
	selector labels.Selector
	policy   func() *accesspolicy.Policy
}

var _ reconcile.Reconciler = &Reconciler{}

// SetupWithManager adds the controller. It needs the index clusterprotection.ClusterIndex.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, options Options) error {
	if err := addIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	if options.Selector == nil {
		options.Selector = labels.Everything()
	}
	if options.Policy == nil {
		options.Policy = func() *accesspolicy.Policy { return nil }
	}
	r := &Reconciler{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), clock: clock.RealClock{}, recorder: mgr.GetEventRecorder(reporter),
		selector: options.Selector, policy: options.Policy,
	}
	b := ctrl.NewControllerManagedBy(mgr).
		Named(reporter).
		For(&v1alpha1.AccessRequest{}).
		Watches(&v1alpha1.ClusterRequest{}, handler.EnqueueRequestsFromMapFunc(r.byRequest)).
		Watches(&v1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.waitingForCluster), builder.WithPredicates(existence())).
		Watches(&v1alpha1.ClusterProfile{}, handler.EnqueueRequestsFromMapFunc(r.waitingForProfile)).
		WithOptions(kit.Options(workers))
	if options.PolicyChanges != nil {
		b.WatchesRawSource(source.Channel(options.PolicyChanges, handler.EnqueueRequestsFromMapFunc(r.waitingForPolicy)))
	}
	return b.Complete(r)
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	p := &pass{Reconciler: r, access: &v1alpha1.AccessRequest{}}
	if err := r.client.Get(ctx, request.NamespacedName, p.access); err != nil {
		return reconcile.Result{}, kit.IgnoreGone(err)
	}
	return p.reconcile(ctx)
}

// hasProvider reports whether a provider has the current version of the request. Without a Cluster no provider can act on it, whatever its labels. If
// there is a policy, labels are not enough: the author of the request can write them.
func (r *Reconciler) hasProvider(access *v1alpha1.AccessRequest) bool {
	if access.Spec.ClusterRef == nil || !v1alpha1.IsClusterProviderResponsibleForAccessRequest(access, "") {
		return false
	}
	if !access.DeletionTimestamp.IsZero() {
		return true
	}
	prepared := meta.FindStatusCondition(access.Status.Conditions, v1alpha1.ConditionPrepared)
	return v1alpha1.IsPrepared(access) && (prepared != nil || !r.policy().RestrictsAccessRequests())
}
