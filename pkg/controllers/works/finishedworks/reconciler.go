// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package finishedworks deletes ManifestWorks that are complete after their deleteOption.ttlSecondsAfterFinished. It skips works of a
// ManifestWorkReplicaSet, whose controller would create them again.
package finishedworks

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/works/manifestworkreplicaset"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

// longest is the longest TTL that counts. It is longer than any that is useful, and short enough to be added to a time.
const longest = 100 * 365 * 24 * time.Hour

// Reconciler deletes one ManifestWork.
type Reconciler struct {
	client client.Client
	clock  clock.PassiveClock
}

var _ reconcile.Reconciler = &Reconciler{}

// SetupWithManager adds the controller.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	if err := kit.ExposeTally(ctx, mgr, &workv1.ManifestWork{}, newTally()); err != nil {
		return err
	}
	r := &Reconciler{client: mgr.GetClient(), clock: clock.RealClock{}}
	isFinished := predicate.NewPredicateFuncs(func(obj client.Object) bool {
		_, ends := deletionTime(obj.(*workv1.ManifestWork))
		return ends
	})
	return ctrl.NewControllerManagedBy(mgr).Named(name).For(&workv1.ManifestWork{}, builder.WithPredicates(isFinished)).
		WithOptions(kit.Options(1)).Complete(r)
}

// deletionTime returns the time at which a work must be deleted, and whether there is one.
func deletionTime(w *workv1.ManifestWork) (at time.Time, ends bool) {
	complete := meta.FindStatusCondition(w.Status.Conditions, workv1.WorkComplete)
	o := w.Spec.DeleteOption
	if o == nil || o.TTLSecondsAfterFinished == nil || !w.DeletionTimestamp.IsZero() || manifestworkreplicaset.IsOfReplicaSet(w.Labels) ||
		complete == nil || complete.Status != metav1.ConditionTrue {
		return time.Time{}, false
	}
	seconds := min(*o.TTLSecondsAfterFinished, int64(longest/time.Second))
	return complete.LastTransitionTime.Add(time.Duration(max(seconds, 0)) * time.Second), true
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	w := &workv1.ManifestWork{}
	if err := r.client.Get(ctx, request.NamespacedName, w); err != nil {
		return reconcile.Result{}, kit.IgnoreGone(err)
	}
	at, ends := deletionTime(w)
	if !ends {
		return reconcile.Result{}, nil
	}
	if wait := at.Sub(r.clock.Now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	// Delete the work only if it is unchanged: a user may have extended its TTL.
	return reconcile.Result{}, kit.IgnoreStale(r.client.Delete(ctx, w, kit.AsRead(w)))
}
