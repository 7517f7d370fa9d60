// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package edgeworks delivers EdgePlacements to their nodes, as ManifestWorks, and reports in their status what the cluster reports about them.
//
// A placement has one work, whose name follows from it. Before the work is written, the rules are evaluated again. A work of that name that does
// not belong to the placement is never changed. The finalizer of a placement is removed when its work is gone.
package edgeworks

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/edge/edgeplacements"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

const (
	workers = 8
	// soon is the delay after which a placement that the rules would not create now is reconciled again: it should have been deleted or changed
	// until then.
	soon = 30 * time.Second
	// askAgain is the delay after which a permission that an author lacks is checked again.
	askAgain = 2 * time.Minute
	// late is the delay after which a refused write is tried again.
	late = 5 * time.Minute
)

// Fields by which objects are looked up.
const (
	byURL     = "edgeservice.url"
	byNode    = "edgeplacement.node"
	byOrigin  = "edgeplacement.origin"
	byService = "edgeplacement.service"
	byHash    = "manifestwork.placement"
)

// Reconciler reconciles the works of placements.
type Reconciler struct {
	Options
	client client.Client
	// live reads from the API server: archives, and whether something is gone.
	live     client.Reader
	clock    clock.PassiveClock
	archives archives
}

var _ reconcile.Reconciler = &Reconciler{}

// SetupWithManager adds the controller.
func (o Options) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	for _, i := range indexes {
		if err := mgr.GetFieldIndexer().IndexField(ctx, i.Kind, i.Field, i.Of); err != nil {
			return err
		}
	}
	if err := kit.Expose(writes); err != nil {
		return err
	}
	r := newReconciler(mgr.GetClient(), mgr.GetAPIReader(), clock.RealClock{})
	r.Options = o
	b := ctrl.NewControllerManagedBy(mgr).Named(name).WithOptions(kit.Options(workers))
	for _, w := range watches(r.client) {
		b = b.Watches(w.kind, handler.EnqueueRequestsFromMapFunc(w.concerns))
	}
	return b.Complete(kit.RequeueConflicts(r))
}

func newReconciler(c client.Client, live client.Reader, clock clock.PassiveClock) *Reconciler {
	return &Reconciler{client: c, live: live, clock: clock, archives: archives{live: live}}
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	p := &edgev1alpha1.EdgePlacement{}
	switch err := r.client.Get(ctx, request.NamespacedName, p); {
	case kit.IsGone(err):
		return reconcile.Result{}, r.sweep(ctx, request.NamespacedName)
	case err != nil:
		return reconcile.Result{}, err
	case !p.DeletionTimestamp.IsZero():
		return reconcile.Result{}, r.finalize(ctx, p)
	}
	pair, ours := edgeplacements.PairOf(p)
	if !ours || !hasFinalizer(p) {
		return reconcile.Result{}, nil // It is being deleted, or gets its finalizer first.
	}
	status, again, err := r.syncWork(ctx, pair, p)
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: again}, kit.IgnoreStale(r.updateStatus(ctx, p, status))
}

// reported is the content of a status.
type reported struct {
	state           edgev1alpha1.PlacementState
	reason, message string
	work            string
	// attempts are nil if they stay as they are.
	attempts *attempts
}

func newReported(state edgev1alpha1.PlacementState, reason, message, work string) reported {
	return reported{state: state, reason: reason, message: message, work: work}
}

// with adds the attempts of what was decided, if anything was.
func (t reported) with(d *decided) reported {
	if d != nil && d.attempts != nil {
		t.attempts = d.attempts
		t.message += d.attempts.failedSuffix()
	}
	return t
}

// updateStatus writes the status, if it has changed.
func (r *Reconciler) updateStatus(ctx context.Context, p *edgev1alpha1.EdgePlacement, t reported) error {
	_, err := kit.PatchStatus(ctx, r.client, p, func(p *edgev1alpha1.EdgePlacement) {
		if s := &p.Status; s.State != t.state || s.LastTransitionTime == nil {
			now := metav1.NewTime(r.clock.Now())
			s.LastTransitionTime = &now
		}
		p.Status.State, p.Status.Reason, p.Status.Message, p.Status.Work = t.state, t.reason, kit.Message(t.message), t.work
		p.Status.ObservedGeneration = p.Generation
		if t.attempts != nil {
			p.Status.Attempts, p.Status.AttemptsOf = t.attempts.list, ""
			if len(t.attempts.list) > 0 {
				p.Status.AttemptsOf = t.attempts.of
			}
		}
	})
	return err
}

// finalize deletes the work of a placement that is being deleted, and then removes the placement's finalizer.
func (r *Reconciler) finalize(ctx context.Context, p *edgev1alpha1.EdgePlacement) error {
	if !hasFinalizer(p) {
		return nil
	}
	key := client.ObjectKeyFromObject(p)
	w := &workv1.ManifestWork{}
	// A live read: with a stale cache, the work would stay forever.
	err := r.live.Get(ctx, types.NamespacedName{Namespace: p.Spec.Node, Name: workName(key)}, w)
	if err == nil && belongsTo(w, key) {
		if err := r.updateStatus(ctx, p, newReported(edgev1alpha1.PlacementRemoving, reasonRemoving, "its work is being removed from the node", w.Name)); err != nil {
			return kit.IgnoreStale(err)
		}
		return r.remove(ctx, w)
	}
	if err := kit.IgnoreGone(err); err != nil {
		return err
	}
	_, err = kit.Patch(ctx, r.client, p, func(p *edgev1alpha1.EdgePlacement) {
		kept := []string{}
		for _, f := range p.Finalizers {
			if f != edgev1alpha1.PlacementFinalizer {
				kept = append(kept, f)
			}
		}
		p.Finalizers = kept
	})
	return kit.IgnoreStale(err)
}

// sweep deletes works of a placement that is gone: another client has removed its finalizer.
func (r *Reconciler) sweep(ctx context.Context, key types.NamespacedName) error {
	works := &workv1.ManifestWorkList{}
	if err := r.client.List(ctx, works, client.MatchingFields{byHash: hash(key)}); err != nil {
		return err
	}
	for i := range works.Items {
		w := &works.Items[i]
		if !belongsTo(w, key) {
			continue
		}
		if err := r.live.Get(ctx, key, &edgev1alpha1.EdgePlacement{}); !kit.IsGone(err) {
			return err // It exists, and its event follows.
		}
		if err := r.remove(ctx, w); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reconciler) remove(ctx context.Context, w *workv1.ManifestWork) error {
	if !w.DeletionTimestamp.IsZero() {
		return nil
	}
	gone := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name}}
	if err := kit.IgnoreGone(wrote("delete", r.client.Delete(ctx, gone, kit.AsRead(w)))); err != nil {
		return fmt.Errorf("ManifestWork %s/%s: %w", w.Namespace, w.Name, err)
	}
	return nil
}

// isRefusal reports whether a write was refused for its content.
func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// isTooLarge reports whether a write was refused for its size.
func isTooLarge(err error) bool {
	return apierrors.IsRequestEntityTooLargeError(err) || strings.Contains(err.Error(), "max-manifests-bytes")
}
