// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package edgeplacements reconciles the EdgePlacements of all policies and patterns, and reports the results in their status. pkg/edge/engine
// decides what is placed where; this package passes it the objects and writes its results.
//
// It trusts no placement: one that the engine does not want is deleted, and one that is not as the engine wants it is updated, whichever user has
// created it. Nothing is written before the engine has all objects: a placement whose policy is not known yet would be deleted.
package edgeplacements

import (
	"context"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/edge/engine"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/membership"
)

const (
	// workers is the number of placements that are written concurrently.
	workers = 8
	// gather is the time for which a status waits for more changes: the status of a policy is written at most once a second, however many nodes
	// change.
	gather = time.Second
)

// generation identifies a spec of an object.
type generation struct {
	uid    types.UID
	number int64
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Reconciler reconciles placements and statuses.
type Reconciler struct {
	client   client.Client
	clock    clock.PassiveClock
	recorder events.EventRecorder
	// queue is set before the first request.
	queue queue

	// mu guards the following fields. It is not held during requests to a server.
	mu     sync.Mutex
	engine *engine.Engine
	index  *membership.Index
	nodes  map[string]*edgev1alpha1.EdgeNode
	// accepted are the UIDs of the accepted clusters, by name.
	accepted map[string]types.UID
	// generations are the generations of the policies and patterns that the engine has.
	generations map[engine.Key]generation
	states      map[engine.Key]map[string]edgev1alpha1.PlacementState
	// refusals are the reasons why an author may not use a service.
	refusals map[engine.Key]string

	reviews reviews
}

var _ reconcile.Reconciler = &Reconciler{}

// SetupWithManager adds the controller.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	if err := kit.Expose(writes); err != nil {
		return err
	}
	if err := kit.ExposeTally(ctx, mgr, &edgev1alpha1.EdgePlacement{}, newTally()); err != nil {
		return err
	}
	r := newReconciler(mgr.GetClient(), mgr.GetEventRecorder(name), clock.RealClock{})
	b := ctrl.NewControllerManagedBy(mgr).Named(name).WithOptions(kit.Options(workers))
	for _, s := range r.sources(mgr.GetCache()) {
		b = b.WatchesRawSource(s)
	}
	return b.Complete(r)
}

// sources returns the sources of the controller. All of them have delivered the existing objects before the first request is handled.
func (r *Reconciler) sources(from cache.Cache) []source.Source {
	sources := []source.Source{source.Func(func(_ context.Context, q queue) error {
		r.queue = q
		return nil
	})}
	for _, w := range r.watches() {
		sources = append(sources, source.Kind(from, w.kind, w.handler))
	}
	return sources
}

func newReconciler(c client.Client, recorder events.EventRecorder, clock clock.PassiveClock) *Reconciler {
	return &Reconciler{
		client: c, clock: clock, recorder: recorder, engine: engine.New(), index: membership.New(), nodes: map[string]*edgev1alpha1.EdgeNode{}, accepted: map[string]types.UID{},
		generations: map[engine.Key]generation{}, states: map[engine.Key]map[string]edgev1alpha1.PlacementState{}, refusals: map[engine.Key]string{},
		reviews: reviews{answers: map[review]cachedDecision{}},
	}
}

// Requests are for a policy or pattern on a node, for the status of one, or for a placement without either. Their names contain a slash, which no
// name of an object has.
const (
	ofPolicy, ofPattern = "policy", "pattern"
	stray               = "stray"
)

func kindOf(pattern bool) string {
	if pattern {
		return ofPattern
	}
	return ofPolicy
}

func pairRequest(p engine.Pair) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: p.Namespace, Name: kindOf(p.Pattern) + "/" + p.Name + "/" + p.Node}}
}

func statusRequest(k engine.Key) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: k.Namespace, Name: kindOf(k.Pattern) + "/" + k.Name}}
}

func strayRequest(p *edgev1alpha1.EdgePlacement) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: p.Namespace, Name: stray + "/" + p.Name}}
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	parts := strings.Split(request.Name, "/")
	key := engine.Key{Namespace: request.Namespace, Pattern: parts[0] == ofPattern, Name: parts[1]}
	switch {
	case parts[0] == stray:
		return reconcile.Result{}, r.deleteStray(ctx, types.NamespacedName{Namespace: request.Namespace, Name: parts[1]})
	case len(parts) == 2:
		return reconcile.Result{}, kit.IgnoreStale(r.updateStatus(ctx, key))
	}
	return r.place(ctx, engine.Pair{Key: key, Node: parts[2]})
}

// originOf returns the origin of a placement.
func originOf(k engine.Key) edgev1alpha1.PlacementOrigin {
	kind := edgev1alpha1.KindDeploymentPolicy
	if k.Pattern {
		kind = edgev1alpha1.KindDeploymentPattern
	}
	return edgev1alpha1.PlacementOrigin{Kind: kind, Name: k.Name}
}

// PairOf returns the policy or pattern and the node of a placement. It returns false if the placement does not have the name that the hub gives it.
func PairOf(p *edgev1alpha1.EdgePlacement) (engine.Pair, bool) {
	origin := p.Spec.Origin
	pair := engine.Pair{Key: engine.Key{Namespace: p.Namespace, Pattern: origin.Kind == edgev1alpha1.KindDeploymentPattern, Name: origin.Name}, Node: p.Spec.Node}
	return pair, origin == originOf(pair.Key) && p.Name == placementName(pair)
}

func placementName(p engine.Pair) string {
	return edge.PlacementName(edge.PlacementOrigin(originOf(p.Key)), p.Node)
}
