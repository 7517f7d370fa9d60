// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/placement/spec"
)

// status returns the status of the placement after the steps.
func (r *evaluation) status(groups []group, written bool) clusterv1beta1.PlacementStatus {
	before := &r.state.Placement.Status
	status := clusterv1beta1.PlacementStatus{
		Conditions:          []metav1.Condition{r.misconfigured(), r.satisfied()},
		LastScoreUpdateTime: before.LastScoreUpdateTime,
	}
	for i := range status.Conditions {
		setTransition(&status.Conditions[i], before.Conditions, r.state.Now)
	}
	for _, old := range before.Conditions {
		if old.Type != clusterv1beta1.PlacementConditionMisconfigured && old.Type != clusterv1beta1.PlacementConditionSatisfied {
			status.Conditions = append(status.Conditions, old)
		}
	}
	if r.failure != nil && len(r.state.Decisions) == 0 {
		status.NumberOfSelectedClusters, status.DecisionGroups = before.NumberOfSelectedClusters, before.DecisionGroups
		return status
	}
	for i := range groups {
		g := clusterv1beta1.DecisionGroupStatus{
			DecisionGroupIndex: int32(i), DecisionGroupName: groups[i].name, ClustersCount: int32(groups[i].count()),
		}
		for j := range groups[i].slices {
			g.Decisions = append(g.Decisions, groups[i].slices[j].name)
		}
		status.NumberOfSelectedClusters += g.ClustersCount
		status.DecisionGroups = append(status.DecisionGroups, g)
	}
	switch {
	case r.problem != nil || r.failure != nil:
	case !r.program.ByScore:
		status.LastScoreUpdateTime = nil
	case written:
		now := metav1.NewTime(r.state.Now).Rfc3339Copy()
		status.LastScoreUpdateTime = &now
	}
	return status
}

// Refused returns the status of a placement whose result could not be written: the existing decisions, and why they are not up to date.
func (r *Result) Refused(before *clusterv1beta1.PlacementStatus, now time.Time, refused error) clusterv1beta1.PlacementStatus {
	status := *before.DeepCopy()
	status.Conditions = slices.Clone(r.Status.Conditions)
	for i := range status.Conditions {
		c := &status.Conditions[i]
		if c.Type != clusterv1beta1.PlacementConditionSatisfied {
			continue
		}
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "NotAllDecisionsScheduled", cut("The decisions could not be written: "+refused.Error())
		setTransition(c, before.Conditions, now)
	}
	return status
}

// setTransition sets the time since which a condition has its status.
func setTransition(c *metav1.Condition, before []metav1.Condition, now time.Time) {
	c.LastTransitionTime = metav1.NewTime(now).Rfc3339Copy()
	for _, old := range before {
		if old.Type == c.Type && old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
	}
}

func (r *evaluation) misconfigured() metav1.Condition {
	c := metav1.Condition{
		Type: clusterv1beta1.PlacementConditionMisconfigured, Status: metav1.ConditionFalse,
		Reason: "Succeedconfigured", Message: "Placement configurations check pass",
	}
	if r.problem != nil {
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, "Misconfigured", cut(r.problem.Error())
	}
	return c
}

func (r *evaluation) satisfied() metav1.Condition {
	c := metav1.Condition{Type: clusterv1beta1.PlacementConditionSatisfied, Status: metav1.ConditionFalse}
	missing := r.unscheduled()
	switch {
	case r.failure != nil:
		c.Reason, c.Message = "NotAllDecisionsScheduled", r.failure.Error()
	case len(r.bound) == 0:
		c.Reason, c.Message = "NoManagedClusterSetBindings", "No valid ManagedClusterSetBindings found in placement namespace"
	case len(r.sets) == 0:
		c.Reason = "NoIntersection"
		c.Message = fmt.Sprintf("None of ManagedClusterSets [%s] is bound to placement namespace", strings.Join(r.program.ClusterSets, ","))
	case len(r.clusters) == 0:
		c.Reason = "AllManagedClusterSetsEmpty"
		c.Message = fmt.Sprintf("All ManagedClusterSets [%s] have no member ManagedCluster", strings.Join(r.sets, ","))
	case r.problem != nil:
		c.Reason = "NotAllDecisionsScheduled"
		c.Message = "The placement is misconfigured: the clusters of the last decisions are kept, as far as they are still in its sets"
	case r.program.Number != nil && *r.program.Number == 0:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, "AllDecisionsScheduled", "All cluster decisions scheduled"
	case len(r.passed) == 0:
		c.Reason, c.Message = "NoManagedClusterMatched", "No ManagedCluster matches any of the cluster predicate: "+r.exclusions()
	case missing > 0:
		c.Reason, c.Message = "NotAllDecisionsScheduled", fmt.Sprintf("%d cluster decisions unscheduled", missing)
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, "AllDecisionsScheduled", "All cluster decisions scheduled"
	}
	c.Message = cut(c.Message)
	return c
}

// exclusions returns how many clusters each filter has excluded.
func (r *evaluation) exclusions() string {
	var sets []string
	for i, set := range r.sets {
		sets = append(sets, fmt.Sprintf("%s (%d)", set, len(r.members[i])))
	}
	parts := []string{fmt.Sprintf("of %s in ManagedClusterSets %s", clusters(len(r.clusters)), shortened(sets, ", "))}
	for i := range r.fallen.parts {
		for p := spec.LabelPart; p <= spec.CELPart; p++ {
			if n := r.fallen.parts[i][p]; n > 0 {
				parts = append(parts, fmt.Sprintf("predicate %d: %s by the %s", i, clusters(n), p))
			}
		}
	}
	var taints []string
	for _, taint := range slices.SortedFunc(maps.Keys(r.fallen.taints), func(a, b clusterv1.Taint) int {
		return cmp.Or(cmp.Compare(r.fallen.taints[b], r.fallen.taints[a]), strings.Compare(taintText(&a), taintText(&b)))
	}) {
		taints = append(taints, fmt.Sprintf("%s (%d)", taintText(&taint), r.fallen.taints[taint]))
	}
	if len(taints) > 0 {
		parts = append(parts, "taints that are not tolerated: "+shortened(taints, ", "))
	}
	if r.fallen.deleted > 0 {
		parts = append(parts, clusters(r.fallen.deleted)+" being deleted")
	}
	return strings.Join(parts, "; ")
}

func clusters(n int) string {
	if n == 1 {
		return "1 cluster"
	}
	return fmt.Sprintf("%d clusters", n)
}

func taintText(t *clusterv1.Taint) string {
	text := t.Key
	if t.Value != "" {
		text += "=" + t.Value
	}
	return text + ":" + string(t.Effect)
}

// cut truncates a message to the length that events and conditions allow, at a character.
func cut(text string) string {
	const most = 1000
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "......"
}
