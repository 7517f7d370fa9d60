// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package accessrequest prepares AccessRequests: it finds out which Cluster a request is for and which provider is
// responsible, labels the request so that this provider sees it, and says on the request what is missing until then. It
// hands a request that has changed, or is being deleted, to its provider anew. It deletes requests whose time is up, or
// whose ClusterRequest gives no access any more.
//
// Providers are other programs, openMCP's own among them. They find their requests by
// IsClusterProviderResponsibleForAccessRequest. From then on this controller writes neither spec nor phase of the request,
// until no provider has it any more.
package accessrequest

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
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
	"github.com/clusterhub/clusterhub/pkg/conditionevents"
	"github.com/clusterhub/clusterhub/pkg/controllers/access/accesspolicy"
	"github.com/clusterhub/clusterhub/pkg/controllers/kit"
)

const (
	// reporter is the controller in events.
	reporter = "accessrequest"
	// What it does, in events.
	actionPrepare, actionEnd = "Prepare", "End"
	// reasonEnded of an event: a request is deleted because its time is over.
	reasonEnded = "AccessEnded"

	workers = 8
)

// Options say which requests are prepared.
type Options struct {
	// Selector selects them by their labels; all, if it is nil.
	Selector labels.Selector
	// Policy is who may ask for which access, now. If it is nil, every user may ask for all.
	Policy func() *accesspolicy.Policy
	// PolicyChanges tells when it is another one; nil, if it never is.
	PolicyChanges <-chan event.GenericEvent
}

// Reconciler prepares one AccessRequest.
type Reconciler struct {
	client client.Client
	// live is no cache.
	live     client.Reader
	clock    clock.PassiveClock
	recorder events.EventRecorder
	selector labels.Selector
	policy   func() *accesspolicy.Policy
}

var _ reconcile.Reconciler = &Reconciler{}

// SetupWithManager adds the controller. The index clusterprotection.ClusterIndex has to be there.
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
	access := &v1alpha1.AccessRequest{}
	if err := r.client.Get(ctx, request.NamespacedName, access); err != nil {
		return reconcile.Result{}, kit.IgnoreGone(err)
	}
	operation := access.Annotations[v1alpha1.OperationAnnotation]
	selected := r.selector.Matches(labels.Set(access.Labels))
	// The end of what has been prepared cannot be put off by other labels.
	begun := meta.FindStatusCondition(access.Status.Conditions, v1alpha1.ConditionPrepared) != nil || markOf(access) != ""
	if operation == v1alpha1.OperationAnnotationValueIgnore || !selected && !begun {
		return reconcile.Result{}, nil
	}
	remaining, limited := r.remaining(access)
	if limited && remaining <= 0 {
		// Who extends the time at this moment keeps the request.
		return reconcile.Result{}, kit.IgnoreOutdated(r.delete(ctx, access, fmt.Sprintf("its time is up, %s after its creation", access.Spec.TTL.Duration)))
	}
	result := reconcile.Result{}
	if limited {
		// Creation times are cut to the second.
		result.RequeueAfter = remaining + time.Second
	}
	if lapsed, err := r.lapse(ctx, access); lapsed || err != nil {
		return result, kit.IgnoreOutdated(err)
	}
	if !selected || r.isTaken(access) {
		return result, nil
	}
	if operation == v1alpha1.OperationAnnotationValueReconcile {
		_, err := kit.Patch(ctx, r.client, access, func(a *v1alpha1.AccessRequest) { delete(a.Annotations, v1alpha1.OperationAnnotation) })
		if err != nil {
			return result, kit.IgnoreOutdated(err)
		}
	}
	if isDenied(access) {
		return result, kit.IgnoreOutdated(r.report(ctx, access, v1alpha1.REQUEST_DENIED, nil))
	}
	return result, kit.IgnoreOutdated(r.prepare(ctx, access))
}

// delete deletes a request that is still as it was read, and tells why.
func (r *Reconciler) delete(ctx context.Context, access *v1alpha1.AccessRequest, why string) error {
	if err := r.client.Delete(ctx, access, kit.AsRead(access)); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("The access ends", "reason", why)
	conditionevents.Note(r.recorder, access, corev1.EventTypeNormal, reasonEnded, actionEnd, "The access ends: "+why)
	return nil
}

// remaining is the time that a request has left, if that is limited and the request is not being deleted already.
func (r *Reconciler) remaining(access *v1alpha1.AccessRequest) (time.Duration, bool) {
	if access.Spec.TTL == nil || !access.DeletionTimestamp.IsZero() {
		return 0, false
	}
	return access.CreationTimestamp.Add(access.Spec.TTL.Duration).Sub(r.clock.Now()), true
}

// isTaken says that a provider has the request as it is. Without a Cluster no provider can act on it, whatever its labels
// say. Where there is a policy, labels alone do not get a request past it: its author can write them.
func (r *Reconciler) isTaken(access *v1alpha1.AccessRequest) bool {
	if access.Spec.ClusterRef == nil || !v1alpha1.IsClusterProviderResponsibleForAccessRequest(access, "") {
		return false
	}
	if !access.DeletionTimestamp.IsZero() {
		return true
	}
	prepared := meta.FindStatusCondition(access.Status.Conditions, v1alpha1.ConditionPrepared)
	return v1alpha1.IsPrepared(access) && (prepared != nil || !r.policy().RestrictsAccessRequests())
}

// isDenied says that a request is denied for good, whatever it asks for by now: by the policy, or by an approver, who need not
// have told which generation was looked at. If it is being deleted, its provider may still have something to take back.
func isDenied(access *v1alpha1.AccessRequest) bool {
	return access.Status.IsDenied() && access.DeletionTimestamp.IsZero()
}
