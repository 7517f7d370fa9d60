// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
)

// maxByRules is the maximum number of conditions of a work that rules may set: the API accepts 128 in total.
const maxByRules = 100

// count counts one type of condition over the manifests.
type count struct {
	yes, no, unknown int
	// message is the last message that is not empty.
	message string
}

func (n *count) all() int { return n.yes + n.no + n.unknown }

// status returns False if any condition is False, otherwise Unknown if any is Unknown. A work is progressing as long as any of its objects is.
func (n *count) status(condition string) metav1.ConditionStatus {
	switch {
	case condition == workv1.WorkProgressing && n.yes > 0:
		return metav1.ConditionTrue
	case condition != workv1.WorkProgressing && n.no > 0:
		return metav1.ConditionFalse
	case n.unknown > 0 || n.all() == 0:
		return metav1.ConditionUnknown
	case condition == workv1.WorkProgressing:
		return metav1.ConditionFalse
	}
	return metav1.ConditionTrue
}

// aggregate sets a work's conditions from those of its manifests.
func aggregate(s *workv1.ManifestWorkStatus, generation int64, now metav1.Time) {
	all := s.ResourceStatus.Manifests
	available, byRules := &count{}, map[string]*count{}
	for i := range all {
		for j := range all[i].Conditions {
			c := &all[i].Conditions[j]
			n := available
			if c.Type != workv1.ManifestAvailable {
				if !ByRule(c) {
					continue
				}
				n = byRules[c.Type]
				if n == nil {
					n = &count{}
					byRules[c.Type] = n
				}
			}
			n.add(c)
		}
	}
	aggregateApplied(s, generation, now)
	setContested(&s.Conditions, workv1.WorkContested, contestedOf(all), generation, now)
	set(&s.Conditions, availableOf(available, len(all)), generation, now)
	types := typesOf(byRules)
	s.Conditions = slices.DeleteFunc(s.Conditions, func(c metav1.Condition) bool { return ByRule(&c) && !slices.Contains(types, c.Type) })
	for _, condition := range types {
		n := byRules[condition]
		c := metav1.Condition{Type: condition, Status: n.status(condition), Reason: workv1.ConditionRulesAggregated, Message: n.message}
		if n.all() != 1 || n.message == "" {
			c.Message = fmt.Sprintf("Aggregated from %d manifest conditions", n.all())
		}
		set(&s.Conditions, c, generation, now)
	}
}

func (n *count) add(c *metav1.Condition) {
	switch c.Status {
	case metav1.ConditionTrue:
		n.yes++
	case metav1.ConditionFalse:
		n.no++
	default:
		n.unknown++
	}
	if c.Message != "" {
		n.message = c.Message
	}
}

// typesOf returns the types that a work has room for: those with a defined meaning first, then by name.
func typesOf(byRules map[string]*count) []string {
	types := slices.Sorted(maps.Keys(byRules))
	if len(types) <= maxByRules {
		return types
	}
	var known []string
	for _, condition := range []string{workv1.WorkComplete, workv1.WorkDegraded, workv1.WorkProgressing} {
		if i, ok := slices.BinarySearch(types, condition); ok {
			types = slices.Delete(types, i, i+1)
			known = append(known, condition)
		}
	}
	return slices.Concat(known, types[:maxByRules-len(known)])
}

func availableOf(n *count, all int) metav1.Condition {
	c := metav1.Condition{Type: workv1.WorkAvailable, Status: metav1.ConditionUnknown, Reason: reasonStatusUnknown}
	switch {
	case n.no > 0:
		c.Status, c.Reason = metav1.ConditionFalse, reasonSomeNotAvailable
		c.Message = fmt.Sprintf("%d of %d resources are not available", n.no, all)
	case n.unknown > 0:
		c.Message = fmt.Sprintf("%d of %d resources have unknown status", n.unknown, all)
	case n.yes == 0:
		// The trailing space is upstream's.
		c.Message = "cannot get any available resource "
	case n.yes < all:
		// Some were not read yet.
		c.Message = fmt.Sprintf("%d of %d resources have unknown status", all-n.yes, all)
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, reasonAllAvailable, "All resources are available"
	}
	return c
}

// contestedOf returns the message about contested objects of a work: that of the first, and their number.
func contestedOf(all []workv1.ManifestCondition) (message string) {
	n := 0
	for i := range all {
		c := meta.FindStatusCondition(all[i].Conditions, workv1.ManifestContested)
		if c == nil {
			continue
		}
		n++
		if n == 1 {
			m := all[i].ResourceMeta
			message = fmt.Sprintf("%s %s: %s", m.Kind, strings.TrimPrefix(m.Namespace+"/"+m.Name, "/"), c.Message)
		}
	}
	if n > 1 {
		message = fmt.Sprintf("%d objects are contested. %s", n, message)
	}
	return message
}

// aggregateApplied changes nothing before all manifests were tried at this generation, or one has failed.
func aggregateApplied(s *workv1.ManifestWorkStatus, generation int64, now metav1.Time) {
	tried, failed := 0, 0
	for i := range s.ResourceStatus.Manifests {
		c := meta.FindStatusCondition(s.ResourceStatus.Manifests[i].Conditions, workv1.ManifestApplied)
		if c == nil || c.ObservedGeneration != generation {
			continue
		}
		tried++
		if c.Status != metav1.ConditionTrue {
			failed++
		}
	}
	c := metav1.Condition{Type: workv1.WorkApplied, Status: metav1.ConditionTrue, Reason: reasonWorkApplied, Message: "Apply manifest work complete"}
	switch {
	case failed > 0:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, reasonWorkNotApplied, "Failed to apply manifest work"
	case tried == 0 || tried < len(s.ResourceStatus.Manifests):
		return
	}
	set(&s.Conditions, c, generation, now)
}
