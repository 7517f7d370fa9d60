// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placementscheduler

import (
	"context"
	"fmt"
	"runtime/debug"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1alpha1"
	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	clusterv1beta2 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
)

// watchedKind is a kind, and the handler of its events.
type watchedKind struct {
	kind    client.Object
	handler handler.EventHandler
}

// watches returns all kinds that decisions depend on. Workers start when each handler has received all existing objects.
func (r *Reconciler) watches() []watchedKind {
	return []watchedKind{
		feed(r, r.setPlacement, r.deletePlacement),
		feed(r, r.setDecision, r.deleteDecision),
		feed(r, func(_ context.Context, s *clusterv1beta2.ManagedClusterSet) { r.hub.SetSet(s) },
			func(_ context.Context, s *clusterv1beta2.ManagedClusterSet) { r.hub.DeleteSet(s.Name) }),
		feed(r, r.setBinding, r.deleteBinding),
		feed(r, func(ctx context.Context, c *clusterv1.ManagedCluster) { r.hub.SetCluster(ctx, c, r.clock.Now()) },
			func(_ context.Context, c *clusterv1.ManagedCluster) { r.hub.DeleteCluster(c.Name) }),
		feed(r, func(ctx context.Context, s *clusterv1alpha1.AddOnPlacementScore) {
			r.hub.SetScore(ctx, s, r.clock.Now())
		},
			func(ctx context.Context, s *clusterv1alpha1.AddOnPlacementScore) {
				r.hub.DeleteScore(ctx, client.ObjectKeyFromObject(s), r.clock.Now())
			}),
	}
}

// feed returns a handler that passes changes to the hub, and enqueues a round. A panic caused by one object must not end the process, which would
// find the same object after a restart: the hub continues with the previous version of that object.
func feed[O any, T interface {
	*O
	client.Object
}](r *Reconciler, set, gone func(context.Context, T)) watchedKind {
	do := func(ctx context.Context, obj client.Object, q queue, tell func(context.Context, T)) {
		r.enqueue(func() {
			defer func() {
				if fault := recover(); fault != nil {
					ctrl.LoggerFrom(ctx).Error(fmt.Errorf("panic: %v\n%s", fault, debug.Stack()), "Skipped a change for the placements",
						"kind", fmt.Sprintf("%T", obj), "object", klog.KObj(obj))
				}
			}()
			tell(ctx, obj.(T))
		})
		q.AddAfter(everything, gather)
	}
	return watchedKind{kind: T(new(O)), handler: handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { do(ctx, e.Object, q, set) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { do(ctx, e.ObjectNew, q, set) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { do(ctx, e.Object, q, gone) },
	}}
}

func (r *Reconciler) setPlacement(_ context.Context, p *clusterv1beta1.Placement) {
	if r.unseenPlacements.hides(p) {
		return
	}
	key := client.ObjectKeyFromObject(p)
	if now := r.hub.Placement(key); now != nil && now.UID != p.UID {
		// The result in progress is for the placement that had the name before.
		r.hub.DeletePlacement(key)
	}
	r.hub.SetPlacement(p)
}

func (r *Reconciler) deletePlacement(_ context.Context, p *clusterv1beta1.Placement) {
	if !r.unseenPlacements.hidesDeletion(p) {
		r.hub.DeletePlacement(client.ObjectKeyFromObject(p))
	}
}

func (r *Reconciler) setDecision(_ context.Context, d *clusterv1beta1.PlacementDecision) {
	if !r.unseenDecisions.hides(d) {
		r.hub.SetDecision(d)
	}
}

func (r *Reconciler) deleteDecision(_ context.Context, d *clusterv1beta1.PlacementDecision) {
	if !r.unseenDecisions.hidesDeletion(d) {
		r.hub.DeleteDecision(client.ObjectKeyFromObject(d))
	}
}

// setBinding adds a binding that is not being deleted. The hub knows whether its set exists. The name of a binding must be that of the set: the
// user who created it had the permission for that one.
func (r *Reconciler) setBinding(ctx context.Context, b *clusterv1beta2.ManagedClusterSetBinding) {
	if !b.DeletionTimestamp.IsZero() || b.Spec.ClusterSet != b.Name {
		r.deleteBinding(ctx, b)
		return
	}
	r.hub.SetBinding(b.Namespace, b.Name)
}

func (r *Reconciler) deleteBinding(_ context.Context, b *clusterv1beta2.ManagedClusterSetBinding) {
	r.hub.DeleteBinding(b.Namespace, b.Name)
}
