// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestworkreplicaset

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/rollout"
)

const (
	// conditionAuthorized is False if the author of the spec does not have the permissions that the set needs.
	conditionAuthorized = "Authorized"

	reasonAuthorUnknown = "AuthorUnknown" // the author of the spec is not known, so nothing is written
	reasonNotAllowed    = "NotAllowed"    // the author may not write works to all chosen clusters; the message names some

	// maxNamed is the maximum number of clusters that a message names.
	maxNamed = 5
)

// status sets the desired status.
func (r *round) status(status *workv1alpha1.ManifestWorkReplicaSetStatus) {
	counts := r.works.countsOf(r.key)
	var summary workv1alpha1.ManifestWorkReplicaSetSummary
	for _, c := range counts {
		add(&summary, c, 1)
	}
	status.PlacementsSummary = nil
	for _, t := range r.targets {
		s := workv1alpha1.PlacementSummary{Name: t.placement, Summary: counts[t.placement]}
		s.Summary.DesiredTotal = len(t.clusters)
		for _, c := range t.clusters {
			if c.Current {
				s.Summary.Updated++
			}
		}
		summary.DesiredTotal += s.Summary.DesiredTotal
		summary.Updated += s.Summary.Updated
		s.AvailableDecisionGroups = fmt.Sprintf("%d (%d / %d clusters applied)", t.reached(), s.Summary.Total, len(t.clusters))
		status.PlacementsSummary = append(status.PlacementsSummary, s)
	}
	status.Summary = summary
	for _, c := range []metav1.Condition{r.verified(), r.rolledOut(), r.applied(summary), r.authorized()} {
		c.ObservedGeneration, c.Message, c.LastTransitionTime = r.set.Generation, kit.Message(c.Message), metav1.NewTime(r.now)
		meta.SetStatusCondition(&status.Conditions, c)
	}
}

// reached returns the number of groups in which each cluster has a work.
func (t *placementTarget) reached() (n int) {
	for _, g := range t.groups {
		if !slices.ContainsFunc(g.Clusters, func(c *rollout.ClusterProgress) bool { return !c.Current && t.works[c.Name] == nil }) {
			n++
		}
	}
	return n
}

func condition(kind string, ok bool, reason, message string) metav1.Condition {
	c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message}
	if ok {
		c.Status = metav1.ConditionTrue
	}
	return c
}

// verified returns the condition whether all placements have decisions.
func (r *round) verified() metav1.Condition {
	const kind = workv1alpha1.ManifestWorkReplicaSetConditionPlacementVerified
	var messages []string
	reason, chosen := "", 0
	for _, t := range r.targets {
		chosen += len(t.clusters)
		if t.problem != nil {
			messages = append(messages, t.problem.Message)
			if reason == "" {
				reason = t.problem.Reason
			}
		}
	}
	switch {
	case reason != "":
		return condition(kind, false, reason, strings.Join(messages, "; "))
	case chosen == 0:
		return condition(kind, false, workv1alpha1.ReasonPlacementDecisionEmpty, "no cluster was chosen")
	}
	return condition(kind, true, workv1alpha1.ReasonAsExpected, "")
}

// isRolledOut reports whether all clusters have succeeded, and no other cluster has a work.
func (r *round) isRolledOut() bool {
	return len(r.surplus) == 0 && !slices.ContainsFunc(r.targets, func(t *placementTarget) bool { return t.problem != nil || !t.plan.Done() })
}

// rolledOut returns a condition that says what the rollout waits for, by cluster.
func (r *round) rolledOut() metav1.Condition {
	const kind = workv1alpha1.ManifestWorkReplicaSetConditionPlacementRolledOut
	if r.isRolledOut() {
		return condition(kind, true, workv1alpha1.ReasonComplete, "")
	}
	var messages []string
	for _, t := range r.targets {
		text := ""
		switch {
		case t.problem != nil:
			text = t.problem.Message
		case !t.plan.Done():
			text = t.plan.Message()
			if len(r.targets) > 1 {
				text = "placement " + t.placement + ": " + text
			}
		default:
			continue
		}
		messages = append(messages, text)
	}
	if n := len(r.surplus); n > 0 {
		messages = append(messages, fmt.Sprintf("%d works of clusters that are not chosen are being deleted", n))
	}
	return condition(kind, false, workv1alpha1.ReasonProgressing, strings.Join(messages, "; "))
}

// applied returns the condition whether the existing works are applied and do what they should.
func (r *round) applied(s workv1alpha1.ManifestWorkReplicaSetSummary) metav1.Condition {
	const kind = workv1alpha1.ManifestWorkReplicaSetConditionManifestworkApplied
	counts := fmt.Sprintf("of %d works, %d are applied, %d available, %d progressing and %d degraded", s.Total, s.Applied, s.Available, s.Progressing, s.Degraded)
	if len(r.unapplied) > 0 {
		counts += "; " + notApplied(r.unapplied)
	}
	switch {
	case len(r.failures) > 0:
		var texts []string
		for _, err := range r.failures {
			texts = append(texts, err.Error())
		}
		slices.Sort(texts)
		return condition(kind, false, workv1alpha1.ReasonNotAsExpected, strings.Join(texts[:min(len(texts), maxNamed)], "; "))
	case s.DesiredTotal == 0 && s.Total == 0:
		return condition(kind, false, workv1alpha1.ReasonPlacementDecisionEmpty, "no works exist, since no cluster was chosen")
	case s.Degraded > 0:
		return condition(kind, false, workv1alpha1.ReasonNotAsExpected, counts)
	case s.Total < s.DesiredTotal || s.Available < s.Total || s.Progressing > 0:
		return condition(kind, false, workv1alpha1.ReasonProcessing, counts)
	}
	return condition(kind, true, workv1alpha1.ReasonAsExpected, "")
}

// authorized returns a condition with the clusters for which the author may not write.
func (r *round) authorized() metav1.Condition {
	if r.rights.unknown != "" {
		return condition(conditionAuthorized, false, reasonAuthorUnknown, r.rights.unknown)
	}
	refused := slices.Sorted(maps.Keys(r.refused))
	if len(refused) == 0 {
		return condition(conditionAuthorized, true, workv1alpha1.ReasonAsExpected, "")
	}
	text := fmt.Sprintf("%s; nothing is written to %d clusters: %s", r.refused[refused[0]], len(refused), named(refused))
	return condition(conditionAuthorized, false, reasonNotAllowed, text)
}

// named returns the first clusters of a list, and the number of the others.
func named(clusters []string) string {
	text := strings.Join(clusters[:min(len(clusters), maxNamed)], ", ")
	if more := len(clusters) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// isWaiting reports whether a state changes with time.
func isWaiting(p *rollout.Plan) bool { return p != nil && !p.Next.IsZero() }
