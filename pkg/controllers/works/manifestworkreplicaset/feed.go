// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestworkreplicaset

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	clusterv1beta2 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	workv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// watchedKind is a kind, and the handler of its events.
type watchedKind struct {
	kind    client.Object
	handler handler.EventHandler
}

// watches returns all kinds that are watched. Workers start when each handler has received all existing objects. Changes that come together cause
// one round.
func (r *Reconciler) watches() []watchedKind {
	return []watchedKind{
		feed(r, func(set *workv1alpha1.ManifestWorkReplicaSet) []types.NamespacedName {
			var placements []string
			for _, ref := range set.Spec.PlacementRefs {
				placements = append(placements, ref.Name)
			}
			r.works.setReplicaSet(client.ObjectKeyFromObject(set), placements)
			return []types.NamespacedName{client.ObjectKeyFromObject(set)}
		}, func(set *workv1alpha1.ManifestWorkReplicaSet) []types.NamespacedName {
			r.works.deleteReplicaSet(client.ObjectKeyFromObject(set))
			return []types.NamespacedName{client.ObjectKeyFromObject(set)}
		}),
		feed(r, func(w *workv1.ManifestWork) []types.NamespacedName { return r.works.set(w, time.Time{}) },
			func(w *workv1.ManifestWork) []types.NamespacedName {
				return r.works.delete(client.ObjectKeyFromObject(w), w.UID)
			}),
		feed(r, ofRevision, ofRevision),
		feed(r, r.ofPlacement, r.ofPlacement),
		feed(r, r.ofDecision, r.ofDecision),
		// Changes of these arrive as decisions. That an author has gained a permission is noticed after a while.
		feed(r, nothing[*clusterv1.ManagedCluster], nothing),
		feed(r, nothing[*clusterv1beta2.ManagedClusterSet], nothing),
		feed(r, nothing[*clusterv1beta2.ManagedClusterSetBinding], nothing),
	}
}

func nothing[T client.Object](T) []types.NamespacedName { return nil }

func ofRevision(r *workv1alpha1.ManifestWorkReplicaSetRevision) []types.NamespacedName {
	return []types.NamespacedName{{Namespace: r.Namespace, Name: r.Spec.ReplicaSet}}
}

func (r *Reconciler) ofPlacement(p *clusterv1beta1.Placement) []types.NamespacedName {
	return r.works.setsOf(client.ObjectKeyFromObject(p))
}

func (r *Reconciler) ofDecision(d *clusterv1beta1.PlacementDecision) []types.NamespacedName {
	return r.works.setsOf(types.NamespacedName{Namespace: d.Namespace, Name: d.Labels[clusterv1beta1.PlacementLabel]})
}

// feed returns a handler that records changes, and enqueues the sets that they concern. A panic caused by one object must not end the process,
// which would find the same object after a restart.
func feed[O any, T interface {
	*O
	client.Object
}](_ *Reconciler, set, gone func(T) []types.NamespacedName) watchedKind {
	do := func(ctx context.Context, obj client.Object, q queue, tell func(T) []types.NamespacedName) {
		defer func() {
			if fault := recover(); fault != nil {
				ctrl.LoggerFrom(ctx).Error(fmt.Errorf("panic: %v\n%s", fault, debug.Stack()), "Skipped a change for the works of replica sets",
					"kind", fmt.Sprintf("%T", obj), "object", klog.KObj(obj))
			}
		}()
		for _, key := range tell(obj.(T)) {
			q.AddAfter(reconcile.Request{NamespacedName: key}, gather)
		}
	}
	return watchedKind{kind: T(new(O)), handler: handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { do(ctx, e.Object, q, set) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			// The decision may have belonged to another placement before.
			do(ctx, e.ObjectOld, q, func(before T) []types.NamespacedName {
				if d, ok := any(before).(*clusterv1beta1.PlacementDecision); ok {
					return any(gone).(func(*clusterv1beta1.PlacementDecision) []types.NamespacedName)(d)
				}
				return nil
			})
			do(ctx, e.ObjectNew, q, set)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { do(ctx, e.Object, q, gone) },
	}}
}

// catchUp reads works from the cache whose write no watch has reported for too long.
func (r *Reconciler) catchUp(ctx context.Context, set types.NamespacedName) {
	for _, e := range r.works.unseenSince(set, r.clock.Now().Add(-maxUnseen)) {
		w, key := &workv1.ManifestWork{}, client.ObjectKeyFromObject(e.work)
		switch err := r.client.Get(ctx, key, w); {
		case err == nil:
			r.works.delete(key, e.work.UID)
			slim(w)
			r.works.set(w, time.Time{})
		case kit.IsGone(err):
			r.works.delete(key, e.work.UID)
		}
	}
}
