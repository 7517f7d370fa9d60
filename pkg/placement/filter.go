// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/expression"
)

// part is the part of a predicate that a cluster does not match.
type part uint8

const (
	allParts part = iota
	labelPart
	claimPart
	celPart
)

func (p part) String() string {
	return [...]string{"", "labelSelector", "claimSelector", "celSelector"}[p]
}

// clusterSelector is a compiled ClusterSelector. Its nil parts select everything.
type clusterSelector struct {
	labels, claims labels.Selector
	expressions    []*expression.Program
}

func compileSelector(label *metav1.LabelSelector, claim *clusterv1beta1.ClusterClaimSelector) (s clusterSelector, err error) {
	if len(label.MatchLabels)+len(label.MatchExpressions) > 0 {
		s.labels, err = metav1.LabelSelectorAsSelector(label)
		if err != nil {
			return s, err
		}
	}
	if len(claim.MatchExpressions) > 0 {
		s.claims, err = metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchExpressions: claim.MatchExpressions})
	}
	return s, err
}

// mismatch returns the first part that the cluster does not match, or allParts if it matches.
func (s *clusterSelector) mismatch(ctx context.Context, c *ClusterInfo, scores Scores, m *meter) part {
	switch {
	case s.labels != nil && !s.labels.Matches(labels.Set(c.Object.Labels)):
		return labelPart
	case s.claims != nil && !s.claims.Matches(c.claims):
		return claimPart
	case !allTrue(ctx, s.expressions, c, scores, selectorCost, m):
		return celPart
	}
	return allParts
}

// verdict is the result of the filters for a cluster. Two are equal if the placement shows no difference between them.
type verdict struct {
	by filter
	// parts has two bits for each predicate: the part that the cluster does not match.
	parts [2]uint64
	// taint is the first taint that is not tolerated.
	taint clusterv1.Taint
	// until is the end of a toleration, when the cluster is excluded. It is zero if none ends.
	until time.Time
}

func (v *verdict) setPart(predicate int, p part) {
	if predicate < maxPredicates {
		v.parts[predicate/32] |= uint64(p) << (predicate % 32 * 2)
	}
}

func (v *verdict) part(predicate int) part {
	return part(v.parts[predicate/32] >> (predicate % 32 * 2) & 3)
}

// maxPredicates is the limit of the API.
const maxPredicates = 64

// filter is the reason why a cluster is excluded.
type filter uint8

const (
	passed filter = iota
	byDeletion
	byPredicate
	byTaint
)

// judge runs the filters. chosen reports whether the cluster is in a decision of the placement now.
func (p *Program) judge(ctx context.Context, c *ClusterInfo, scores Scores, m *meter, chosen bool, now time.Time) (v verdict) {
	if c.deleting() {
		v.by = byDeletion
		return v
	}
	matches := len(p.predicates) == 0
	for i := range p.predicates {
		mismatch := p.predicates[i].mismatch(ctx, c, scores, m)
		if mismatch == allParts {
			matches = true
			break
		}
		v.setPart(i, mismatch)
	}
	if !matches {
		v.by = byPredicate
		return v
	}
	v.parts = [2]uint64{}
	for i := range c.Object.Spec.Taints {
		taint := &c.Object.Spec.Taints[i]
		until, tolerated := p.tolerates(taint, chosen, now)
		if !tolerated {
			v.by, v.taint, v.until = byTaint, *taint, time.Time{}
			return v
		}
		v.until = earlier(v.until, until)
	}
	return v
}

// tolerates reports whether a taint is tolerated, and until when; the zero time is forever.
func (p *Program) tolerates(taint *clusterv1.Taint, chosen bool, now time.Time) (until time.Time, tolerated bool) {
	if taint.Effect == clusterv1.TaintEffectPreferNoSelect || (taint.Effect == clusterv1.TaintEffectNoSelectIfNew && chosen) {
		return time.Time{}, true
	}
	for i := range p.tolerations {
		t := &p.tolerations[i]
		if (t.Effect != "" && t.Effect != taint.Effect) || (t.Key != "" && t.Key != taint.Key) ||
			(t.Operator != clusterv1beta1.TolerationOpExists && t.Value != taint.Value) {
			continue
		}
		if t.TolerationSeconds == nil {
			return time.Time{}, true
		}
		// Longer than the longest duration is forever.
		if *t.TolerationSeconds > maxSeconds {
			return time.Time{}, true
		}
		if end := taint.TimeAdded.Add(time.Duration(*t.TolerationSeconds) * time.Second); now.Before(end) && end.After(until) {
			until, tolerated = end, true
		}
	}
	return until, tolerated
}

const maxSeconds = int64(1<<63-1) / int64(time.Second)

// The messages of Open Cluster Management for such tolerations.
const (
	emptyKey      = "If the key is empty, operator must be Exists."
	needlessValue = "If the operator is Exists, the value should be empty."
)

// contradiction returns an error if a toleration contradicts itself.
func contradiction(t *clusterv1beta1.Toleration) error {
	switch t.Operator {
	case "", clusterv1beta1.TolerationOpEqual:
		if t.Key == "" {
			return errors.New(emptyKey) //nolint:staticcheck // It is their sentence, with its full stop.
		}
	case clusterv1beta1.TolerationOpExists:
		if t.Value != "" {
			return errors.New(needlessValue) //nolint:staticcheck // The same.
		}
	default:
		return fmt.Errorf("incorrect toleration operator: %s", t.Operator)
	}
	return nil
}

// earlier returns the earlier of two times, of which the zero time is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
