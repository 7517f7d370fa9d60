// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
)

// Next returns the status after a round, without changing the previous one. If nothing has changed, both are equal, including times.
func Next(former *workv1.ManifestWorkStatus, round Round) *workv1.ManifestWorkStatus {
	next := &workv1.ManifestWorkStatus{}
	next.Conditions = slices.Clone(former.Conditions)
	before := index(former.ResourceStatus.Manifests)
	cut := meta.IsStatusConditionTrue(former.Conditions, conditionStatusTruncated)
	for i := range round.Manifests {
		m := &round.Manifests[i]
		next.ResourceStatus.Manifests = append(next.ResourceStatus.Manifests, nextManifest(before.of(&m.Meta), cut, m, &round))
	}
	aggregate(next, round.Generation, round.Now)
	bound(next, round.Generation, round.Now)
	return next
}

// manifests are those of a status, indexed by their metadata.
type manifests struct {
	exact map[workv1.ManifestResourceMeta]*workv1.ManifestCondition
	// moved is indexed without ordinals, for manifests that moved within the spec. A value is nil if the key is ambiguous.
	moved map[workv1.ManifestResourceMeta]*workv1.ManifestCondition
}

func index(former []workv1.ManifestCondition) manifests {
	m := manifests{map[workv1.ManifestResourceMeta]*workv1.ManifestCondition{}, map[workv1.ManifestResourceMeta]*workv1.ManifestCondition{}}
	for i := range former {
		one := &former[i]
		m.exact[one.ResourceMeta] = one
		key := one.ResourceMeta
		key.Ordinal = 0
		if _, twice := m.moved[key]; twice {
			one = nil
		}
		m.moved[key] = one
	}
	// Manifests that could not be parsed only have an ordinal.
	delete(m.moved, workv1.ManifestResourceMeta{})
	return m
}

func (m manifests) of(of *workv1.ManifestResourceMeta) *workv1.ManifestCondition {
	if found := m.exact[*of]; found != nil {
		return found
	}
	key := *of
	key.Ordinal = 0
	if found := m.moved[key]; found != nil {
		return found
	}
	return &workv1.ManifestCondition{}
}

// Find returns the status of a manifest, or nil.
func Find(status *workv1.ManifestWorkStatus, of *workv1.ManifestResourceMeta) *workv1.ManifestCondition {
	found := index(status.ResourceStatus.Manifests).of(of)
	if len(found.Conditions) == 0 {
		return nil
	}
	return found
}

// nextManifest returns the status of a manifest. cut is whether the previous status was truncated.
func nextManifest(former *workv1.ManifestCondition, cut bool, m *Manifest, round *Round) workv1.ManifestCondition {
	next := workv1.ManifestCondition{ResourceMeta: m.Meta, StatusFeedbacks: former.StatusFeedbacks}
	next.Conditions = slices.Clone(former.Conditions)
	if m.Applied != nil {
		setApplied(&next.Conditions, appliedCondition(m.Applied, round.Generation), round.Now)
		setContested(&next.Conditions, workv1.ManifestContested, m.Applied.Contested, round.Generation, round.Now)
		setAdopted(&next.Conditions, m.Applied.Adoption, round.Generation, round.Now)
	}
	if m.Seen != nil {
		var fresh []metav1.Condition
		if m.Seen.Err == nil {
			fresh = m.Seen.Conditions
			feedback := feedbackCondition(m.Seen)
			feedback.LastTransitionTime = round.Now
			leftOut := cut && len(former.StatusFeedbacks.Values) == 0
			if !leftOut && !equality.Semantic.DeepEqual(former.StatusFeedbacks.Values, m.Seen.Feedback) {
				// New values get a new time, as in Open Cluster Management.
				meta.RemoveStatusCondition(&next.Conditions, FeedbackSynced)
			}
			next.StatusFeedbacks.Values = m.Seen.Feedback
			meta.SetStatusCondition(&next.Conditions, feedback)
		}
		// A rule may define Available.
		if m.Seen.Err == nil && m.Seen.AvailableWaits {
			if c := meta.FindStatusCondition(next.Conditions, workv1.ManifestAvailable); c != nil && !ByRule(c) {
				meta.RemoveStatusCondition(&next.Conditions, workv1.ManifestAvailable)
			}
		} else if !slices.ContainsFunc(fresh, func(c metav1.Condition) bool { return c.Type == workv1.ManifestAvailable }) {
			set(&next.Conditions, availableCondition(m), 0, round.Now)
		}
		for _, c := range fresh {
			if Makes(c.Type) {
				set(&next.Conditions, c, round.Generation, round.Now)
			}
		}
	}
	next.Conditions = slices.DeleteFunc(next.Conditions, func(c metav1.Condition) bool {
		return ByRule(&c) && c.ObservedGeneration != round.Generation && (!m.Frozen || c.Type != workv1.ManifestComplete)
	})
	if c := meta.FindStatusCondition(next.Conditions, workv1.ManifestComplete); m.Frozen && c != nil && ByRule(c) {
		c.ObservedGeneration = round.Generation
	}
	return next
}

// setApplied gives the condition a new time at each generation: clients that wait for a rollout detect by it that the new generation was applied.
func setApplied(conditions *[]metav1.Condition, c metav1.Condition, now metav1.Time) {
	c.LastTransitionTime = now
	former := meta.FindStatusCondition(*conditions, c.Type)
	switch {
	case former == nil:
		// It is always the first.
		*conditions = slices.Insert(*conditions, 0, c)
	case former.ObservedGeneration == c.ObservedGeneration && former.Status == c.Status:
		c.LastTransitionTime = former.LastTransitionTime
		*former = c
	default:
		*former = c
	}
}

// setContested sets the condition with the message, or removes it if that is empty: most objects are never contested.
func setContested(conditions *[]metav1.Condition, conditionType, message string, generation int64, now metav1.Time) {
	if message == "" {
		meta.RemoveStatusCondition(conditions, conditionType)
		return
	}
	set(conditions, metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue, Reason: reasonContested, Message: message}, generation, now)
}

// setAdopted sets the condition of an object that existed before the work, and removes it from one that the work has created.
func setAdopted(conditions *[]metav1.Condition, adoption Adoption, generation int64, now metav1.Time) {
	c := metav1.Condition{Type: workv1.ManifestAdopted, Status: metav1.ConditionTrue, Reason: reasonExisted}
	switch adoption {
	case Created:
		meta.RemoveStatusCondition(conditions, c.Type)
		return
	case Adopted:
		c.Message = "The object existed before it was applied. It is deleted with the work"
	case AdoptedToStay:
		c.Message = "The object existed before it was applied. It stays when the work is deleted"
	default:
		return
	}
	set(conditions, c, generation, now)
}

func set(conditions *[]metav1.Condition, c metav1.Condition, generation int64, now metav1.Time) {
	c.ObservedGeneration, c.LastTransitionTime, c.Message = generation, now, Cut(c.Message)
	meta.SetStatusCondition(conditions, c)
}
