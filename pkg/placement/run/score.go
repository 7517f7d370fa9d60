// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"slices"
	"strings"
	"time"

	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/placement/fleet"
	"github.com/clusterhub/clusterhub/pkg/placement/spec"
)

// column has the scores of one prioritizer for all clusters that have passed the filters.
type column struct {
	spec.Prioritizer
	scores []int64
}

// scores computes the scores of the clusters that have passed, and their totals.
func (r *evaluation) scores() {
	if r.totals != nil {
		return
	}
	r.totals = make([]int64, len(r.passed))
	out := make([]int64, len(r.passed))
	for _, p := range r.program.Prioritizers {
		if p.Weight == 0 {
			continue
		}
		clear(out)
		end := r.state.Timing.of(TimePrioritizer, p.MetricName())
		r.score(&p, out)
		end()
		for i, score := range out {
			r.totals[i] += p.Weight * score
		}
		if r.explain {
			r.columns = append(r.columns, column{p, slices.Clone(out)})
		}
	}
}

func (r *evaluation) score(p *spec.Prioritizer, out []int64) {
	switch {
	case p.Resource != "":
		r.scoreAddOn(p, out)
	case p.Name == clusterv1beta1.PrioritizerBalance:
		r.scoreBalance(out)
	case p.Name == clusterv1beta1.PrioritizerSteady:
		for i, c := range r.passed {
			if r.isCurrent(c.Name()) {
				out[i] = 100
			}
		}
	default:
		if of, isResource := p.AmountOf(); isResource {
			r.scoreResource(out, of)
		}
	}
}

func (r *evaluation) scoreBalance(out []int64) {
	most := 0
	if r.state.Load != nil {
		most = r.state.Load.Most()
	}
	for i, c := range r.passed {
		out[i] = 100
		if most == 0 {
			continue
		}
		if count := r.state.Load.Count(c.Name()); count > 0 {
			out[i] = 2 * int64(100*(0.5-float64(count)/float64(most)))
		}
	}
}

func (r *evaluation) scoreResource(out []int64, of func(*fleet.ClusterInfo) fleet.Amount) {
	var least, most float64
	first := true
	for _, c := range r.passed {
		a := of(c)
		switch {
		case !a.Reported:
		case first:
			least, most, first = a.Value, a.Value, false
		default:
			least, most = min(least, a.Value), max(most, a.Value)
		}
	}
	for i, c := range r.passed {
		switch a := of(c); {
		case !a.Reported:
		case most == least:
			out[i] = 100
		default:
			out[i] = int64((a.Value-least)/(most-least)*200 - 100)
		}
	}
}

func (r *evaluation) scoreAddOn(p *spec.Prioritizer, out []int64) {
	if r.state.Scores == nil {
		return
	}
	var expired []string
	for i, c := range r.passed {
		object := r.state.Scores.Score(c.Name(), p.Resource)
		if object == nil {
			continue
		}
		if until := object.Status.ValidUntil; until != nil {
			if !r.state.Now.Before(until.Time) {
				expired = append(expired, c.Name()+"/"+p.Resource)
				continue
			}
			r.again(until.Time)
		}
		out[i] = p.ScoreOf(object)
	}
	if len(expired) > 0 {
		r.warning = &warning{plugin: p.Name, message: "AddOnPlacementScores " + shortened(expired, ",") + " expired"}
	}
}

// warning is shown in the events of decisions that are written.
type warning struct{ plugin, message string }

// shortened returns a list that may be long, shortened.
func shortened(names []string, separator string) string {
	const most = 10
	if len(names) <= most {
		return strings.Join(names, separator)
	}
	return strings.Join(names[:most], separator) + separator + "…"
}

// again records a time at which the result may change.
func (r *evaluation) again(at time.Time) {
	if at.After(r.state.Now) {
		r.next = spec.Earlier(r.next, at)
	}
}
