// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edgeplacements

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/conditionevents"
	"github.com/clusterhub/clusterhub/pkg/edge/engine"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

const (
	// reasonUnreadable is the reason for a spec, or a service policy, that the rules cannot read.
	reasonUnreadable = "CannotBeRead"
	// maxExcluded is the maximum number of reasons in a status.
	maxExcluded = 32
)

// updateStatus writes the status of a policy or pattern, if it has changed.
func (r *Reconciler) updateStatus(ctx context.Context, key engine.Key) error {
	name := types.NamespacedName{Namespace: key.Namespace, Name: key.Name}
	if key.Pattern {
		p := &edgev1alpha1.DeploymentPattern{}
		if err := r.client.Get(ctx, name, p); err != nil {
			return kit.IgnoreGone(err)
		}
		before := slices.Clone(p.Status.Conditions)
		changed, err := kit.PatchStatus(ctx, r.client, p, func(p *edgev1alpha1.DeploymentPattern) { r.status(key, p, &p.Status) })
		if changed {
			r.note(p, before, p.Status.Conditions)
		}
		return err
	}
	p := &edgev1alpha1.DeploymentPolicy{}
	if err := r.client.Get(ctx, name, p); err != nil {
		return kit.IgnoreGone(err)
	}
	before := slices.Clone(p.Status.Conditions)
	changed, err := kit.PatchStatus(ctx, r.client, p, func(p *edgev1alpha1.DeploymentPolicy) { r.status(key, p, &p.Status) })
	if changed {
		r.note(p, before, p.Status.Conditions)
	}
	return err
}

// note records events when faults begin and end. It records none for nodes, which would be too many: each placement has its state.
func (r *Reconciler) note(about runtime.Object, before, after []metav1.Condition) {
	const action = "Place"
	conditionevents.RecordFault(r.recorder, about, before, after, edgev1alpha1.ConditionValid, action)
	conditionevents.RecordFault(r.recorder, about, before, after, edgev1alpha1.ConditionPlaced, action)
	if haveFailed(before) || haveFailed(after) { // Placed reports that there are no placements
		conditionevents.Record(r.recorder, about, before, after, edgev1alpha1.ConditionRunning, action)
	}
}

func haveFailed(conditions []metav1.Condition) bool {
	c := meta.FindStatusCondition(conditions, edgev1alpha1.ConditionRunning)
	return c != nil && c.Reason == edgev1alpha1.ReasonPlacementsFailed
}

// status sets the status from what is known now. It is about the spec that the engine knows.
func (r *Reconciler) status(key engine.Key, obj metav1.Object, s *edgev1alpha1.DeploymentStatus) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.generations[key]
	if known.uid != obj.GetUID() {
		return // It is a different object of the name, which the watch has not reported yet.
	}
	counts := r.engine.Counts(key)
	s.ObservedGeneration = known.number
	s.Nodes = edgev1alpha1.NodeCounts{Reached: int32(counts.Reached), Selected: int32(counts.Selected)}
	for _, state := range r.states[key] {
		switch state {
		case edgev1alpha1.PlacementRemoving:
			continue
		case edgev1alpha1.PlacementRunning:
			s.Nodes.Running++
		case edgev1alpha1.PlacementFailed:
			s.Nodes.Failed++
		}
		s.Nodes.Placed++
	}
	s.Excluded = nil
	for reason, nodes := range counts.Excluded {
		s.Excluded = append(s.Excluded, edgev1alpha1.ExcludedNodes{Reason: string(reason), Nodes: int32(nodes)})
	}
	slices.SortFunc(s.Excluded, func(a, b edgev1alpha1.ExcludedNodes) int {
		return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.Reason, b.Reason))
	})
	s.Excluded = s.Excluded[:min(len(s.Excluded), maxExcluded)]
	// A copy: patches compare with what was read.
	s.Conditions = slices.Clone(s.Conditions)
	for _, c := range []metav1.Condition{r.valid(key), r.placed(key, s.Nodes), running(s.Nodes)} {
		c.ObservedGeneration, c.Message = known.number, kit.Message(c.Message)
		c.LastTransitionTime = metav1.NewTime(r.clock.Now())
		meta.SetStatusCondition(&s.Conditions, c)
	}
}

func condition(kind string, is bool, reason, format string, args ...any) metav1.Condition {
	c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: fmt.Sprintf(format, args...)}
	if is {
		c.Status = metav1.ConditionTrue
	}
	return c
}

func (r *Reconciler) valid(key engine.Key) metav1.Condition {
	missing, err := r.engine.State(key)
	switch refusal := r.refusals[key]; {
	case err != nil:
		return condition(edgev1alpha1.ConditionValid, false, reasonUnreadable, "%v", err)
	case len(missing) > 0:
		return condition(edgev1alpha1.ConditionValid, false, edgev1alpha1.ReasonServiceNotFound,
			"namespace %s has no EdgeService for any of the listed versions of service %s", missing[0].Org, missing[0].Name)
	case refusal != "":
		return condition(edgev1alpha1.ConditionValid, false, edgev1alpha1.ReasonServiceNotAllowed, "%s", refusal)
	}
	return condition(edgev1alpha1.ConditionValid, true, edgev1alpha1.ReasonAsExpected, "")
}

func (r *Reconciler) placed(key engine.Key, n edgev1alpha1.NodeCounts) metav1.Condition {
	switch {
	case !r.engine.Bound(key.Namespace):
		return condition(edgev1alpha1.ConditionPlaced, false, edgev1alpha1.ReasonNoBoundSet,
			"no ManagedClusterSet is bound to namespace %s, so it reaches no node", key.Namespace)
	case n.Selected == 0 && n.Placed == 0:
		return condition(edgev1alpha1.ConditionPlaced, false, edgev1alpha1.ReasonNoNodeSelected, "%d nodes are reached, and the rules exclude all of them", n.Reached)
	case n.Placed != n.Selected:
		return condition(edgev1alpha1.ConditionPlaced, false, edgev1alpha1.ReasonProgressing, "%d nodes are selected, and %d have a placement", n.Selected, n.Placed)
	}
	return condition(edgev1alpha1.ConditionPlaced, true, edgev1alpha1.ReasonAsExpected, "%d nodes have their placement", n.Placed)
}

func running(n edgev1alpha1.NodeCounts) metav1.Condition {
	switch {
	case n.Failed > 0:
		return condition(edgev1alpha1.ConditionRunning, false, edgev1alpha1.ReasonPlacementsFailed, "%d of %d placements are Failed", n.Failed, n.Placed)
	case n.Placed == 0:
		return condition(edgev1alpha1.ConditionRunning, false, edgev1alpha1.ReasonNoNodeSelected, "there are no placements")
	case n.Running < n.Placed:
		return condition(edgev1alpha1.ConditionRunning, false, edgev1alpha1.ReasonProgressing, "%d of %d placements are Running", n.Running, n.Placed)
	}
	return condition(edgev1alpha1.ConditionRunning, true, edgev1alpha1.ReasonAsExpected, "%d placements are Running", n.Running)
}
