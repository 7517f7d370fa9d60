// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"slices"
	"strings"
	"time"

	clusterv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1alpha1"
	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
)

// Scores is the interface to AddOnPlacementScores.
type Scores interface {
	// Score returns the AddOnPlacementScore of a name in the namespace of a cluster, or nil. It must not be changed.
	Score(cluster, name string) *clusterv1alpha1.AddOnPlacementScore
}

// Load is the number of decisions of other placements for each cluster.
type Load interface {
	Count(cluster string) int
	// Most returns the highest count of all clusters, including those that are not relevant here.
	Most() int
}

// column has the scores of one prioritizer for all clusters that have passed the filters.
type column struct {
	prioritizer
	scores []int64
}

// scores computes the scores of the clusters that have passed, and their totals.
func (r *run) scores() {
	if r.totals != nil {
		return
	}
	r.totals = make([]int64, len(r.passed))
	out := make([]int64, len(r.passed))
	for _, p := range r.program.prioritizers {
		if p.weight == 0 {
			continue
		}
		clear(out)
		end := r.state.Timing.of(TimePrioritizer, p.timed())
		r.score(&p, out)
		end()
		for i, score := range out {
			r.totals[i] += p.weight * score
		}
		if r.explain {
			r.columns = append(r.columns, column{p, slices.Clone(out)})
		}
	}
}

func (r *run) score(p *prioritizer, out []int64) {
	switch {
	case p.resource != "":
		r.scoreAddOn(p, out)
	case p.name == clusterv1beta1.PrioritizerBalance:
		r.scoreBalance(out)
	case p.name == clusterv1beta1.PrioritizerSteady:
		for i, c := range r.passed {
			if r.isCurrent(c.Name()) {
				out[i] = 100
			}
		}
	default:
		if of, isResource := p.amount(); isResource {
			r.scoreResource(out, of)
		}
	}
}

// amount returns the resource by which a prioritizer scores clusters, if it does.
func (p *prioritizer) amount() (of func(*ClusterInfo) amount, isResource bool) {
	switch {
	case p.resource != "":
	case p.name == clusterv1beta1.PrioritizerResourceAllocatableCPU:
		return func(c *ClusterInfo) amount { return c.cpu }, true
	case p.name == clusterv1beta1.PrioritizerResourceAllocatableMemory:
		return func(c *ClusterInfo) amount { return c.memory }, true
	}
	return nil, false
}

func (r *run) scoreBalance(out []int64) {
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

func (r *run) scoreResource(out []int64, of func(*ClusterInfo) amount) {
	var least, most float64
	first := true
	for _, c := range r.passed {
		a := of(c)
		switch {
		case !a.reported:
		case first:
			least, most, first = a.value, a.value, false
		default:
			least, most = min(least, a.value), max(most, a.value)
		}
	}
	for i, c := range r.passed {
		switch a := of(c); {
		case !a.reported:
		case most == least:
			out[i] = 100
		default:
			out[i] = int64((a.value-least)/(most-least)*200 - 100)
		}
	}
}

func (r *run) scoreAddOn(p *prioritizer, out []int64) {
	if r.state.Scores == nil {
		return
	}
	var expired []string
	for i, c := range r.passed {
		object := r.state.Scores.Score(c.Name(), p.resource)
		if object == nil {
			continue
		}
		if until := object.Status.ValidUntil; until != nil {
			if !r.state.Now.Before(until.Time) {
				expired = append(expired, c.Name()+"/"+p.resource)
				continue
			}
			r.again(until.Time)
		}
		out[i] = p.of(object)
	}
	if len(expired) > 0 {
		r.warning = &warning{plugin: p.name, message: "AddOnPlacementScores " + someOf(expired, ",") + " expired"}
	}
}

// of returns the score that a prioritizer reads from an AddOnPlacementScore, which may be nil.
func (p *prioritizer) of(object *clusterv1alpha1.AddOnPlacementScore) int64 {
	if object == nil {
		return 0
	}
	for i := range object.Status.Scores {
		if item := &object.Status.Scores[i]; item.Name == p.score {
			return int64(min(max(item.Value, -100), 100))
		}
	}
	return 0
}

// warning is shown in the events of decisions that are written.
type warning struct{ plugin, message string }

// someOf returns a list that may be long, shortened.
func someOf(names []string, separator string) string {
	const most = 10
	if len(names) <= most {
		return strings.Join(names, separator)
	}
	return strings.Join(names[:most], separator) + separator + "…"
}

// again records a time at which the result may change.
func (r *run) again(at time.Time) {
	if at.After(r.state.Now) {
		r.next = earlier(r.next, at)
	}
}
