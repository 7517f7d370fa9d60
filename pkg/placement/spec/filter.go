// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

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
	"github.com/clusterhub/clusterhub/pkg/placement/fleet"
)

// SelectorPart is the part of a predicate that a cluster does not match.
type SelectorPart uint8

// Parts of a predicate.
const (
	AllParts SelectorPart = iota // the cluster matches all parts
	LabelPart
	claimPart
	CELPart
)

func (p SelectorPart) String() string {
	return [...]string{"", "labelSelector", "claimSelector", "celSelector"}[p]
}

// ClusterSelector is a compiled ClusterSelector. Its nil parts select everything.
type ClusterSelector struct {
	Labels, Claims labels.Selector
	Expressions    []*expression.Program
}

func compileSelector(label *metav1.LabelSelector, claim *clusterv1beta1.ClusterClaimSelector) (s ClusterSelector, err error) {
	if len(label.MatchLabels)+len(label.MatchExpressions) > 0 {
		s.Labels, err = metav1.LabelSelectorAsSelector(label)
		if err != nil {
			return s, err
		}
	}
	if len(claim.MatchExpressions) > 0 {
		s.Claims, err = metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchExpressions: claim.MatchExpressions})
	}
	return s, err
}

// mismatch returns the first part that the cluster does not match, or AllParts if it matches.
func (s *ClusterSelector) mismatch(ctx context.Context, c *fleet.ClusterInfo, scores fleet.Scores, m *Meter) SelectorPart {
	switch {
	case s.Labels != nil && !s.Labels.Matches(labels.Set(c.Object.Labels)):
		return LabelPart
	case s.Claims != nil && !s.Claims.Matches(c.Claims):
		return claimPart
	case !allTrue(ctx, s.Expressions, c, scores, selectorCost, m):
		return CELPart
	}
	return AllParts
}

// Verdict is the result of the filters for a cluster. Two are equal if the placement shows no difference between them.
type Verdict struct {
	By Filter
	// parts has two bits for each predicate: the part that the cluster does not match.
	parts [2]uint64
	// Taint is the first taint that is not tolerated.
	Taint clusterv1.Taint
	// Until is the end of a toleration, when the cluster is excluded. It is zero if none ends.
	Until time.Time
}

func (v *Verdict) setPart(predicate int, p SelectorPart) {
	if predicate < maxPredicates {
		v.parts[predicate/32] |= uint64(p) << (predicate % 32 * 2)
	}
}

// Part returns the part of a predicate that the cluster does not match.
func (v *Verdict) Part(predicate int) SelectorPart {
	return SelectorPart(v.parts[predicate/32] >> (predicate % 32 * 2) & 3)
}

// maxPredicates is the limit of the API.
const maxPredicates = 64

// Filter is the reason why a cluster is excluded.
type Filter uint8

// Filters, in the order in which they run.
const (
	Passed Filter = iota
	ByDeletion
	ByPredicate
	ByTaint
)

// Filter runs the filters. chosen reports whether the cluster is in a decision of the placement now.
func (p *Program) Filter(ctx context.Context, c *fleet.ClusterInfo, scores fleet.Scores, m *Meter, chosen bool, now time.Time) (v Verdict) {
	if c.Deleting() {
		v.By = ByDeletion
		return v
	}
	matches := len(p.Predicates) == 0
	for i := range p.Predicates {
		mismatch := p.Predicates[i].mismatch(ctx, c, scores, m)
		if mismatch == AllParts {
			matches = true
			break
		}
		v.setPart(i, mismatch)
	}
	if !matches {
		v.By = ByPredicate
		return v
	}
	v.parts = [2]uint64{}
	for i := range c.Object.Spec.Taints {
		taint := &c.Object.Spec.Taints[i]
		until, tolerated := p.tolerates(taint, chosen, now)
		if !tolerated {
			v.By, v.Taint, v.Until = ByTaint, *taint, time.Time{}
			return v
		}
		v.Until = Earlier(v.Until, until)
	}
	return v
}

// tolerates reports whether a taint is tolerated, and until when; the zero time is forever.
func (p *Program) tolerates(taint *clusterv1.Taint, chosen bool, now time.Time) (until time.Time, tolerated bool) {
	if taint.Effect == clusterv1.TaintEffectPreferNoSelect || (taint.Effect == clusterv1.TaintEffectNoSelectIfNew && chosen) {
		return time.Time{}, true
	}
	for i := range p.Tolerations {
		t := &p.Tolerations[i]
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

// Earlier returns the earlier of two times, of which the zero time is never.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
