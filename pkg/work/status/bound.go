// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
)

// MaxSize is the maximum size of a status, in bytes of its JSON. hub-apiserver accepts 512000, and counts fewer bytes for an entry.
const MaxSize = 480_000

// reserve is the size of the condition that reports what was left out.
const reserve = 500

// shortMessage is the length to which messages of a status that is too large are cut.
const shortMessage = 96

// bound leaves out parts of a status that exceed its maximum size, the least important first. The result is deterministic. Conditions of the work are
// computed before, so they count all manifests.
func bound(s *workv1.ManifestWorkStatus, generation int64, now metav1.Time) {
	all := s.ResourceStatus.Manifests
	sizes := make([]int, len(all))
	rest := *s
	rest.ResourceStatus.Manifests = nil
	// The previous report does not count, or the result would not be the same.
	rest.Conditions = slices.DeleteFunc(slices.Clone(s.Conditions), func(c metav1.Condition) bool { return c.Type == conditionStatusTruncated })
	before := sizeOf(&rest)
	total := before
	for i := range all {
		sizes[i] = sizeOf(&all[i])
		total += sizes[i]
	}
	if total <= MaxSize-reserve {
		meta.RemoveStatusCondition(&s.Conditions, conditionStatusTruncated)
		return
	}
	b := &bounding{all: all, sizes: sizes, total: total}
	for i := range s.Conditions {
		s.Conditions[i].Message = cut(s.Conditions[i].Message, shortMessage)
	}
	for i := range rest.Conditions {
		rest.Conditions[i].Message = cut(rest.Conditions[i].Message, shortMessage)
	}
	b.total += sizeOf(&rest) - before
	b.each(func(m *workv1.ManifestCondition) {
		for i := range m.Conditions {
			m.Conditions[i].Message = cut(m.Conditions[i].Message, shortMessage)
		}
	})
	// These conditions only report that there are no rules.
	b.each(func(m *workv1.ManifestCondition) {
		m.Conditions = slices.DeleteFunc(m.Conditions, func(c metav1.Condition) bool { return c.Type == FeedbackSynced && c.Reason == reasonNoFeedback })
	})
	values := b.dropFeedback()
	kept := b.dropManifests()
	s.ResourceStatus.Manifests = kept
	message := "messages are cut"
	if values > 0 {
		message += fmt.Sprintf(", the feedback of %d manifests is left out", values)
	}
	if left := len(all) - len(kept); left > 0 {
		message += fmt.Sprintf(", %d of %d manifests are left out", left, len(all))
	}
	set(&s.Conditions, metav1.Condition{Type: conditionStatusTruncated, Status: metav1.ConditionTrue, Reason: reasonStatusTooLarge,
		Message: fmt.Sprintf("a status can have %d bytes: %s; split the work into several works", MaxSize, message)}, generation, now)
}

// bounding is a status that is being reduced.
type bounding struct {
	all   []workv1.ManifestCondition
	sizes []int
	total int
}

func (b *bounding) fits() bool { return b.total <= MaxSize-reserve }

// each changes all manifests, unless the status already fits.
func (b *bounding) each(change func(*workv1.ManifestCondition)) {
	if b.fits() {
		return
	}
	for i := range b.all {
		change(&b.all[i])
		b.weigh(i)
	}
}

func (b *bounding) weigh(i int) {
	b.total -= b.sizes[i]
	b.sizes[i] = sizeOf(&b.all[i])
	b.total += b.sizes[i]
}

// dropFeedback removes feedback, the largest first, and the condition about it. Values are removed or kept, but never cut.
func (b *bounding) dropFeedback() (manifests int) {
	var with []int
	feedback := map[int]int{}
	for i := range b.all {
		if len(b.all[i].StatusFeedbacks.Values) > 0 {
			with = append(with, i)
			feedback[i] = sizeOf(&b.all[i].StatusFeedbacks)
		}
	}
	slices.SortStableFunc(with, func(x, y int) int { return cmp.Compare(feedback[y], feedback[x]) })
	for _, i := range with {
		if b.fits() {
			break
		}
		b.all[i].StatusFeedbacks.Values = nil
		b.all[i].Conditions = slices.DeleteFunc(b.all[i].Conditions, func(c metav1.Condition) bool {
			return c.Type == FeedbackSynced && c.Status == metav1.ConditionTrue
		})
		b.weigh(i)
		manifests++
	}
	return manifests
}

// dropManifests first removes manifests that are as desired, the last of the spec first. Complete manifests are removed last, since they would be
// applied again.
func (b *bounding) dropManifests() (kept []workv1.ManifestCondition) {
	order := make([]int, len(b.all))
	for i := range order {
		order[i] = len(order) - 1 - i
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(importance(&b.all[x]), importance(&b.all[y])) })
	left := map[int]bool{}
	for _, i := range order {
		if b.fits() {
			break
		}
		left[i] = true
		b.total -= b.sizes[i]
	}
	for i := range b.all {
		if !left[i] {
			kept = append(kept, b.all[i])
		}
	}
	return kept
}

func importance(m *workv1.ManifestCondition) int {
	if meta.IsStatusConditionTrue(m.Conditions, workv1.ManifestComplete) {
		return 2
	}
	if meta.IsStatusConditionTrue(m.Conditions, workv1.ManifestApplied) && meta.IsStatusConditionTrue(m.Conditions, workv1.ManifestAvailable) {
		return 0
	}
	return 1
}

// sizeOf returns the size of a part, including a comma.
func sizeOf(part any) int {
	text, err := json.Marshal(part)
	if err != nil {
		return MaxSize
	}
	return len(text) + 1
}
