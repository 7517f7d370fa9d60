// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edgeplacements

import (
	"context"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/edge/engine"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/namehash"
)

// place creates, updates or deletes the placement of a policy or pattern on a node, as the engine wants.
func (r *Reconciler) place(ctx context.Context, pair engine.Pair) (reconcile.Result, error) {
	r.mu.Lock()
	wanted := r.engine.Desired(pair)
	r.mu.Unlock()
	p := &edgev1alpha1.EdgePlacement{}
	err := r.client.Get(ctx, types.NamespacedName{Namespace: pair.Namespace, Name: placementName(pair)}, p)
	there := err == nil
	switch {
	case kit.IgnoreGone(err) != nil:
		return reconcile.Result{}, err
	case there && !p.DeletionTimestamp.IsZero(), !there && len(wanted) == 0:
		// It is placed again, if it must be, when it is gone.
		return reconcile.Result{}, nil
	case len(wanted) == 0:
		return reconcile.Result{}, r.remove(ctx, p)
	}
	if !there || !slices.Equal(placed(p), wanted) {
		// The permission is needed to place services. Those that are placed already stay without it.
		refusal, err := r.checkUse(ctx, pair.Key, wanted)
		if err != nil {
			return reconcile.Result{}, err
		}
		if refusal != "" {
			return reconcile.Result{RequeueAfter: deniedFor}, nil
		}
	}
	if !there {
		p = &edgev1alpha1.EdgePlacement{ObjectMeta: metav1.ObjectMeta{Namespace: pair.Namespace, Name: placementName(pair)}}
		setDesired(p, pair, wanted)
		if err := wrote("create", r.client.Create(ctx, p)); err != nil {
			return reconcile.Result{}, fmt.Errorf("the EdgePlacement of %s on node %s: %w", pair.Name, pair.Node, err)
		}
		return reconcile.Result{}, nil
	}
	if p.Spec.Node != pair.Node || p.Spec.Origin != originOf(pair.Key) {
		// These fields are immutable.
		return reconcile.Result{}, r.remove(ctx, p)
	}
	_, err = kit.Patch(ctx, r.client, p, func(p *edgev1alpha1.EdgePlacement) { setDesired(p, pair, wanted) })
	return reconcile.Result{}, kit.IgnoreStale(err)
}

// setDesired sets the desired state of a placement.
func setDesired(p *edgev1alpha1.EdgePlacement, pair engine.Pair, wanted []engine.Placed) {
	labels := maps.Clone(p.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, Labels(pair))
	p.Labels = labels
	if !slices.Contains(p.Finalizers, edgev1alpha1.PlacementFinalizer) {
		p.Finalizers = append(slices.Clone(p.Finalizers), edgev1alpha1.PlacementFinalizer)
	}
	p.Spec = edgev1alpha1.EdgePlacementSpec{Node: pair.Node, Origin: originOf(pair.Key)}
	for _, w := range wanted {
		p.Spec.Services = append(p.Spec.Services, edgev1alpha1.PlacedService{
			Name: w.Name, Org: w.Org, Version: w.Version, Arch: w.Arch, TargetNamespace: w.Namespace})
	}
}

// Labels returns the labels of a placement, and of its work.
func Labels(pair engine.Pair) map[string]string {
	of, value := edgev1alpha1.PolicyLabel, pair.Name
	if pair.Pattern {
		of = edgev1alpha1.PatternLabel
	}
	if len(value) > validation.LabelValueMaxLength {
		value = namehash.NameHash(value)
	}
	return map[string]string{edgev1alpha1.NodeLabel: pair.Node, of: value}
}

// remove deletes a placement, if it is as it was read. The finalizer ensures that its work is deleted first.
func (r *Reconciler) remove(ctx context.Context, p *edgev1alpha1.EdgePlacement) error {
	if !p.DeletionTimestamp.IsZero() {
		return nil
	}
	gone := &edgev1alpha1.EdgePlacement{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}}
	return kit.IgnoreStale(wrote("delete", r.client.Delete(ctx, gone, kit.AsRead(p))))
}

// deleteStray deletes a placement that does not have the name that the hub gives placements.
func (r *Reconciler) deleteStray(ctx context.Context, key types.NamespacedName) error {
	p := &edgev1alpha1.EdgePlacement{}
	if err := r.client.Get(ctx, key, p); err != nil {
		return client.IgnoreNotFound(err)
	}
	if _, ours := PairOf(p); ours {
		return nil
	}
	return r.remove(ctx, p)
}
