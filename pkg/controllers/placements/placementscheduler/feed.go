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
func (s *sharedScheduler) watches() []watchedKind {
	return []watchedKind{
		feed(s, s.setPlacement, s.deletePlacement),
		feed(s, s.setDecision, s.deleteDecision),
		feed(s, func(_ context.Context, set *clusterv1beta2.ManagedClusterSet) { s.hub.SetSet(set) },
			func(_ context.Context, set *clusterv1beta2.ManagedClusterSet) { s.hub.DeleteSet(set.Name) }),
		feed(s, s.setBinding, s.deleteBinding),
		feed(s, func(ctx context.Context, c *clusterv1.ManagedCluster) { s.hub.SetCluster(ctx, c, s.clock.Now()) },
			func(_ context.Context, c *clusterv1.ManagedCluster) { s.hub.DeleteCluster(c.Name) }),
		feed(s, func(ctx context.Context, score *clusterv1alpha1.AddOnPlacementScore) {
			s.hub.SetScore(ctx, score, s.clock.Now())
		},
			func(ctx context.Context, score *clusterv1alpha1.AddOnPlacementScore) {
				s.hub.DeleteScore(ctx, client.ObjectKeyFromObject(score), s.clock.Now())
			}),
	}
}

// feed returns a handler that passes changes to the hub, and enqueues a round. A panic caused by one object must not end the process, which would
// find the same object after a restart: the hub continues with the previous version of that object.
func feed[O any, T interface {
	*O
	client.Object
}](s *sharedScheduler, set, gone func(context.Context, T)) watchedKind {
	do := func(ctx context.Context, obj client.Object, q queue, tell func(context.Context, T)) {
		s.enqueue(func() {
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

func (s *sharedScheduler) setPlacement(_ context.Context, p *clusterv1beta1.Placement) {
	if s.unseenPlacements.hides(p) {
		return
	}
	key := client.ObjectKeyFromObject(p)
	if now := s.hub.Placement(key); now != nil && now.UID != p.UID {
		// The result in progress is for the placement that had the name before.
		s.hub.DeletePlacement(key)
	}
	s.hub.SetPlacement(p)
}

func (s *sharedScheduler) deletePlacement(_ context.Context, p *clusterv1beta1.Placement) {
	if !s.unseenPlacements.hidesDeletion(p) {
		s.hub.DeletePlacement(client.ObjectKeyFromObject(p))
	}
}

func (s *sharedScheduler) setDecision(_ context.Context, d *clusterv1beta1.PlacementDecision) {
	if !s.unseenDecisions.hides(d) {
		s.hub.SetDecision(d)
	}
}

func (s *sharedScheduler) deleteDecision(_ context.Context, d *clusterv1beta1.PlacementDecision) {
	if !s.unseenDecisions.hidesDeletion(d) {
		s.hub.DeleteDecision(client.ObjectKeyFromObject(d))
	}
}

// setBinding adds a binding that is not being deleted. The hub knows whether its set exists. The name of a binding must be that of the set: the
// user who created it had the permission for that one.
func (s *sharedScheduler) setBinding(ctx context.Context, b *clusterv1beta2.ManagedClusterSetBinding) {
	if !b.DeletionTimestamp.IsZero() || b.Spec.ClusterSet != b.Name {
		s.deleteBinding(ctx, b)
		return
	}
	s.hub.SetBinding(b.Namespace, b.Name)
}

func (s *sharedScheduler) deleteBinding(_ context.Context, b *clusterv1beta2.ManagedClusterSetBinding) {
	s.hub.DeleteBinding(b.Namespace, b.Name)
}
