// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placementscheduler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/placement/run"
)

// actionSchedule is the action of events.
const actionSchedule = "Schedule"

// write applies the steps of a result in their order, stops at the first one that fails, and otherwise writes the status. Every write fails if the
// object has changed since the result was computed.
func (r *Reconciler) write(ctx context.Context, key types.NamespacedName, w *work) error {
	for i := range w.result.Steps {
		step := &w.result.Steps[i]
		d, err := r.step(ctx, key, w, step)
		if err != nil {
			return fmt.Errorf("%s of the PlacementDecision %s/%s: %w", step.Action, key.Namespace, step.Name, err)
		}
		for _, e := range step.Events {
			kind := corev1.EventTypeNormal
			if e.Warning {
				kind = corev1.EventTypeWarning
			}
			r.recorder.Eventf(w.placement, d, kind, e.Reason, actionSchedule, "%s", e.Message)
		}
	}
	p := w.placement.DeepCopy()
	changed, err := kit.PatchStatus(ctx, r.client, p, func(p *clusterv1beta1.Placement) { p.Status = *w.result.Status.DeepCopy() })
	if err != nil {
		return fmt.Errorf("the status of the Placement %s: %w", key, err)
	}
	if changed {
		r.scheduler.learnPlacement(p)
	}
	return nil
}

// step applies one step, and returns its decision.
func (r *Reconciler) step(ctx context.Context, key types.NamespacedName, w *work, step *run.Step) (*clusterv1beta1.PlacementDecision, error) {
	now := w.decisions[step.Name]
	switch {
	case step.Action == run.Delete:
		return now, r.delete(ctx, w, now)
	case step.Action != run.Create:
		return r.update(ctx, w, step, now)
	}
	d := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: key.Namespace, Name: step.Name, Labels: maps.Clone(step.Labels), OwnerReferences: run.Owners(w.placement),
	}}
	err := r.client.Create(ctx, d)
	if apierrors.IsAlreadyExists(err) {
		// Another client has removed its label, or the cache is stale.
		there := &clusterv1beta1.PlacementDecision{}
		if r.client.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: step.Name}, there) == nil {
			return r.update(ctx, w, step, there)
		}
	}
	if err != nil {
		return nil, err
	}
	// The server ignores the status of a new object. Until the status is written, the decision has no clusters; those that move here are still
	// where they were, since that step comes after this one.
	w.decisions[step.Name] = d
	d, err = r.update(ctx, w, step, d)
	if !kit.IsGone(err) {
		r.scheduler.learn(d) // also without a status
	}
	return d, err
}

// update applies a step to an existing decision.
func (r *Reconciler) update(ctx context.Context, w *work, step *run.Step, now *clusterv1beta1.PlacementDecision) (*clusterv1beta1.PlacementDecision, error) {
	d := now.DeepCopy()
	labels := func() error {
		_, err := kit.Patch(ctx, r.client, d, func(d *clusterv1beta1.PlacementDecision) {
			if d.Labels == nil {
				d.Labels = map[string]string{}
			}
			maps.Copy(d.Labels, step.Labels)
			d.OwnerReferences = run.Owners(w.placement)
		})
		return err
	}
	status := func() error {
		if step.Action == run.Relabel {
			return nil
		}
		_, err := kit.PatchStatus(ctx, r.client, d, func(d *clusterv1beta1.PlacementDecision) { d.Status.Decisions = slices.Clone(step.Decisions) })
		return err
	}
	writes := []func() error{status, labels}
	if goesToLaterGroup(d, step) {
		slices.Reverse(writes)
	}
	for _, write := range writes {
		err := write()
		w.decisions[step.Name] = d
		if d.ResourceVersion != now.ResourceVersion {
			r.scheduler.learn(d.DeepCopy())
		}
		if kit.IsGone(err) {
			r.scheduler.learnDeleted(d)
		}
		if err != nil {
			return d, err
		}
	}
	return d, nil
}

// goesToLaterGroup reports whether the labels must be written before the clusters. These are two writes, and a reader in between sees clusters in a
// group that is not theirs. Rollouts go from one group to the next: a cluster that is seen in a later group waits for a moment, but one that is
// seen in an earlier group would be changed too early. So in between it is the later of both groups. A decision without the label of its placement
// gets its clusters before it becomes visible.
func goesToLaterGroup(d *clusterv1beta1.PlacementDecision, step *run.Step) bool {
	if d.Labels[clusterv1beta1.PlacementLabel] != step.Labels[clusterv1beta1.PlacementLabel] {
		return false
	}
	before, err := strconv.Atoi(d.Labels[clusterv1beta1.DecisionGroupIndexLabel])
	after, _ := strconv.Atoi(step.Labels[clusterv1beta1.DecisionGroupIndexLabel])
	return err == nil && after > before
}

// delete deletes a decision, if it is as it was read. It succeeds if the decision is gone already.
func (r *Reconciler) delete(ctx context.Context, w *work, d *clusterv1beta1.PlacementDecision) error {
	gone := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name}}
	if err := kit.IgnoreGone(r.client.Delete(ctx, gone, kit.AsRead(d))); err != nil {
		return err
	}
	delete(w.decisions, d.Name)
	r.scheduler.learnDeleted(d)
	return nil
}
