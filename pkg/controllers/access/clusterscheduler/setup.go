// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterscheduler

import (
	"context"
	"slices"

	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

const (
	// purposeIndex finds clusters by their purposes, holderIndex by the UIDs of the requests that have them.
	purposeIndex = "clusterscheduler/purpose"
	holderIndex  = "clusterscheduler/holder"
	// uidIndex finds a request by its UID, clusterIndex those that are granted a cluster, pendingIndex those that wait for a purpose.
	uidIndex     = "clusterscheduler/uid"
	clusterIndex = "clusterscheduler/cluster"
	pendingIndex = "clusterscheduler/pending"
	// anyPurpose finds all waiting requests. No purpose is empty.
	anyPurpose = ""
)

// Options are the flags of the scheduler.
type Options struct {
	// ConfigFiles are YAML files with a block "scheduler". Without any, this process leaves ClusterRequests to another.
	ConfigFiles []string
}

// AddFlags adds the flags.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.ConfigFiles, "scheduler-config", o.ConfigFiles,
		"Comma-separated list of YAML files with a block \"scheduler\", which defines which clusters ClusterRequests are granted and who may "+
			"request what. Later files take precedence. Changes are reloaded. Without files, or without purposes in them, this process does not "+
			"handle ClusterRequests.")
}

// Load reads the configuration, which is nil without files. It must be added to a manager to follow changes.
func (o Options) Load() (*LiveConfig, error) {
	if len(o.ConfigFiles) == 0 {
		return nil, nil
	}
	return NewLiveConfig(o.ConfigFiles)
}

// SetupWithManager adds the controllers, if there is a configuration for them.
func SetupWithManager(mgr ctrl.Manager, live *LiveConfig) error {
	if live == nil {
		return nil
	}
	for index, extract := range clusterIndexers {
		if err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.Cluster{}, index, extract); err != nil {
			return err
		}
	}
	for index, extract := range requestIndexers {
		if err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.ClusterRequest{}, index, extract); err != nil {
			return err
		}
	}
	r := newReconciler(mgr.GetClient(), mgr.GetAPIReader(), live.current.Load, mgr.GetEventRecorder(name))
	if err := setupOrphans(mgr, r); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(name).
		For(&v1alpha1.ClusterRequest{}).
		Watches(&v1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.requestsOf), builder.WithPredicates(losses())).
		Watches(&v1alpha1.ClusterProfile{}, handler.EnqueueRequestsFromMapFunc(r.requestsFor),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Channel(live.Changes(), handler.EnqueueRequestsFromMapFunc(
			func(ctx context.Context, _ client.Object) []reconcile.Request {
				return r.requestsBy(ctx, pendingIndex, anyPurpose)
						}))).
		WithOptions(kit.Options(1)). // each decision is based on those before it
		Complete(r)
}

var clusterIndexers = map[string]client.IndexerFunc{
	purposeIndex: func(obj client.Object) []string { return obj.(*v1alpha1.Cluster).Spec.Purposes },
	holderIndex:  func(obj client.Object) []string { return obj.(*v1alpha1.Cluster).GetRequestUIDs().UnsortedList() },
}

var requestIndexers = map[string]client.IndexerFunc{
	uidIndex: func(obj client.Object) []string { return []string{string(obj.GetUID())} },
	clusterIndex: func(obj client.Object) []string {
		if cluster := obj.(*v1alpha1.ClusterRequest).Status.Cluster; cluster != nil {
			return []string{cluster.NamespacedName().String()}
		}
		return nil
	},
	pendingIndex: func(obj client.Object) []string {
		if request := obj.(*v1alpha1.ClusterRequest); request.Status.IsPending() {
			return []string{request.Spec.Purpose, anyPurpose}
		}
		return nil
	},
}

// losses passes events that can affect requests: when a cluster is being deleted or gone, and when a finalizer is removed. It drops the frequent
// status updates of providers.
func losses() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero() ||
				slices.ContainsFunc(e.ObjectOld.GetFinalizers(), func(f string) bool { return !slices.Contains(e.ObjectNew.GetFinalizers(), f) })
		},
	}
}

// requestsOf returns the requests that have a cluster, will get it, or may have waited for it.
func (r *Reconciler) requestsOf(ctx context.Context, obj client.Object) (requests []reconcile.Request) {
	cluster := obj.(*v1alpha1.Cluster)
	requests = r.requestsBy(ctx, clusterIndex, client.ObjectKeyFromObject(cluster).String())
	for uid := range cluster.GetRequestUIDs() {
		requests = append(requests, r.requestsBy(ctx, uidIndex, uid)...)
	}
	for purpose, definition := range r.config().PurposeMappings {
		if slices.Contains(cluster.Spec.Purposes, purpose) || definition.mayName(cluster.Name) {
			requests = append(requests, r.requestsBy(ctx, pendingIndex, purpose)...)
		}
	}
	return requests
}

// requestsFor returns the requests that wait for a purpose whose clusters are of a profile.
func (r *Reconciler) requestsFor(ctx context.Context, profile client.Object) (requests []reconcile.Request) {
	for purpose, definition := range r.config().PurposeMappings {
		if definition.Template.Spec.Profile == profile.GetName() {
			requests = append(requests, r.requestsBy(ctx, pendingIndex, purpose)...)
		}
	}
	return requests
}

func (r *Reconciler) requestsBy(ctx context.Context, index, value string) []reconcile.Request {
	return kit.Requests(ctx, r.client, &v1alpha1.ClusterRequestList{}, client.MatchingFields{index: value})
}
