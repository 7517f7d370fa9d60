// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1alpha1"
	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	clusterv1beta2 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	"github.com/clusterhub/clusterhub/pkg/placement/fleet"
	"github.com/clusterhub/clusterhub/pkg/placement/run"
	"github.com/clusterhub/clusterhub/pkg/placement/spec"
)

// Scheduler has the placements of a hub and all that they are chosen from. It is called for each change, and knows which placements the change can
// affect: those of the namespaces that have bound one of the cluster's sets, and of these the ones whose own rules depend on it. Nothing is
// scheduled until Round, so many changes at once cause one run of a placement. It is not safe for concurrent use.
//
// Objects that it is given must not be changed afterwards.
type Scheduler struct {
	// Timing is called with the times of runs, and may be nil.
	Timing run.Timing

	fleet  *fleet.Index
	loads  *fleet.Loads
	scores scoreIndex
	// bindings are the sets that a namespace has bound, and namespaces the reverse.
	bindings, namespaces map[string]map[string]bool
	placements           map[types.NamespacedName]*scheduled
	byNamespace          map[string]map[types.NamespacedName]*scheduled
	// decisions are the decisions of each placement, whether it exists or not, by their names. owner has the placement of each decision.
	decisions map[types.NamespacedName]map[string]*clusterv1beta1.PlacementDecision
	owner     map[types.NamespacedName]types.NamespacedName
	dirty     map[types.NamespacedName]bool
	spent     spending

	compile func(*clusterv1beta1.PlacementSpec) *spec.Program
	// faults are panics that Round has not returned yet.
	faults []error
}

// scheduled is a placement.
type scheduled struct {
	placement *clusterv1beta1.Placement
	program   *spec.Program
	// expected are the decisions and the status after the last run. Events with these contents are ignored.
	expected map[string]run.Step
	status   *clusterv1beta1.PlacementStatus
	// again is the time of the next run without any change.
	again time.Time
	// paused is the time before which it is not run, because the last run was expensive.
	paused time.Time
	// writing reports whether the results of the last run are being written.
	writing bool
}

type scoreIndex map[types.NamespacedName]*clusterv1alpha1.AddOnPlacementScore

// Score implements Scores.
func (x scoreIndex) Score(cluster, name string) *clusterv1alpha1.AddOnPlacementScore {
	return x[types.NamespacedName{Namespace: cluster, Name: name}]
}

// NewScheduler returns an empty Scheduler.
func NewScheduler() *Scheduler {
	return &Scheduler{
		fleet: fleet.New(), loads: fleet.NewLoads(), scores: scoreIndex{},
		bindings: map[string]map[string]bool{}, namespaces: map[string]map[string]bool{},
		placements:  map[types.NamespacedName]*scheduled{},
		byNamespace: map[string]map[types.NamespacedName]*scheduled{},
		decisions:   map[types.NamespacedName]map[string]*clusterv1beta1.PlacementDecision{},
		owner:       map[types.NamespacedName]types.NamespacedName{},
		dirty:       map[types.NamespacedName]bool{},
		spent:       spending{},
		compile:     spec.Compile,
	}
}

// SetPlacement adds or replaces a placement. One that is being deleted is not scheduled any more.
func (h *Scheduler) SetPlacement(obj *clusterv1beta1.Placement) {
	key := types.NamespacedName{Namespace: obj.Namespace, Name: obj.Name}
	if obj.DeletionTimestamp != nil {
		h.forget(key)
		return
	}
	s := h.placements[key]
	if s == nil {
		s = &scheduled{}
		h.placements[key] = s
		put(h.byNamespace, key.Namespace, key, s)
	}
	before := s.placement
	s.placement = obj
	if before == nil || before.UID != obj.UID || before.Generation != obj.Generation {
		s.program, s.status = h.compiled(obj), nil
	}
	disabled := func(p *clusterv1beta1.Placement) bool {
		return p.Annotations[clusterv1beta1.PlacementDisableAnnotation] == "true"
	}
	if s.status == nil || disabled(before) != disabled(obj) || !equality.Semantic.DeepEqual(*s.status, obj.Status) {
		h.dirty[key] = true
	}
}

// DeletePlacement removes a placement.
func (h *Scheduler) DeletePlacement(key types.NamespacedName) { h.forget(key) }

func (h *Scheduler) forget(key types.NamespacedName) {
	delete(h.placements, key)
	drop(h.byNamespace, key.Namespace, key)
	delete(h.dirty, key)
}

// SetDecision adds or replaces a decision.
func (h *Scheduler) SetDecision(obj *clusterv1beta1.PlacementDecision) {
	name := types.NamespacedName{Namespace: obj.Namespace, Name: obj.Name}
	key := types.NamespacedName{Namespace: obj.Namespace, Name: obj.Labels[clusterv1beta1.PlacementLabel]}
	if before, known := h.owner[name]; known && before != key {
		h.DeleteDecision(name)
	}
	if key.Name == "" {
		return
	}
	h.owner[name] = key
	put(h.decisions, key, obj.Name, obj)
	h.decided(key, func(s *scheduled) bool {
		step, wanted := s.expected[obj.Name]
		return wanted && run.Owned(obj, s.placement) && maps.Equal(step.Labels, run.OwnLabels(obj)) && slices.Equal(step.Decisions, obj.Status.Decisions)
	})
}

// DeleteDecision removes a decision.
func (h *Scheduler) DeleteDecision(name types.NamespacedName) {
	key, known := h.owner[name]
	if !known {
		return
	}
	delete(h.owner, name)
	drop(h.decisions, key, name.Name)
	h.decided(key, func(s *scheduled) bool {
		_, wanted := s.expected[name.Name]
		return !wanted
	})
}

// decided handles a change of a decision.
func (h *Scheduler) decided(key types.NamespacedName, asExpected func(*scheduled) bool) {
	s := h.placements[key]
	if s == nil || !s.writing {
		var clusters []string
		for _, d := range h.decisions[key] {
			for i := range d.Status.Decisions {
				clusters = append(clusters, d.Status.Decisions[i].ClusterName)
			}
		}
		h.loads.Set(key, clusters)
	}
	if s != nil && !asExpected(s) {
		h.dirty[key] = true
	}
}

// SetCluster adds or replaces a cluster.
func (h *Scheduler) SetCluster(ctx context.Context, obj *clusterv1.ManagedCluster, now time.Time) {
	before, after, moved := h.fleet.SetCluster(obj)
	for _, set := range moved {
		h.touchSet(set, nil)
	}
	for _, set := range h.fleet.SetsOf(obj.Name) {
		if slices.Contains(moved, set) {
			continue
		}
		h.touchSet(set, func(key types.NamespacedName, s *scheduled) bool {
			return h.asked(key, s, now, func() (bool, uint64) {
				return s.program.Touches(ctx, before, after, h.seen(key, s, obj.Name, now))
			})
		})
	}
}

// seen returns the state for the question whether a change of a cluster affects a placement that no change has affected since its last run.
func (h *Scheduler) seen(key types.NamespacedName, s *scheduled, cluster string, now time.Time) spec.Seen {
	return spec.Seen{Now: now, Scores: h.scores, Chosen: h.loads.Has(key, cluster), Others: func(yield func(*fleet.ClusterInfo) bool) {
		for set := range h.bindings[key.Namespace] {
			if !s.program.ChoosesFrom(set) {
				continue
			}
			members, _, _ := h.fleet.Members(set)
			for _, c := range members {
				if !yield(c) {
					return
				}
			}
		}
	}}
}

// DeleteCluster removes a cluster.
func (h *Scheduler) DeleteCluster(name string) {
	for _, set := range h.fleet.DeleteCluster(name) {
		h.touchSet(set, nil)
	}
}

// SetSet adds or replaces a set.
func (h *Scheduler) SetSet(obj *clusterv1beta2.ManagedClusterSet) {
	if h.fleet.SetSet(obj) {
		h.touchNamespaces(obj.Name)
	}
}

// DeleteSet removes a set.
func (h *Scheduler) DeleteSet(name string) {
	h.fleet.DeleteSet(name)
	h.touchNamespaces(name)
}

// SetBinding adds a binding of a set to a namespace.
func (h *Scheduler) SetBinding(namespace, set string) {
	if h.bindings[namespace][set] {
		return
	}
	put(h.bindings, namespace, set, true)
	put(h.namespaces, set, namespace, true)
	h.touchNamespace(namespace)
}

// DeleteBinding removes a binding.
func (h *Scheduler) DeleteBinding(namespace, set string) {
	drop(h.bindings, namespace, set)
	drop(h.namespaces, set, namespace)
	h.touchNamespace(namespace)
}

// SetScore adds or replaces the scores of a cluster.
func (h *Scheduler) SetScore(ctx context.Context, obj *clusterv1alpha1.AddOnPlacementScore, now time.Time) {
	key := types.NamespacedName{Namespace: obj.Namespace, Name: obj.Name}
	before := h.scores[key]
	h.scores[key] = obj
	if before == nil || !slices.Equal(before.Status.Scores, obj.Status.Scores) || !before.Status.ValidUntil.Equal(obj.Status.ValidUntil) {
		h.touchScore(ctx, key, before, obj, now)
	}
}

// DeleteScore removes the scores of a cluster.
func (h *Scheduler) DeleteScore(ctx context.Context, key types.NamespacedName, now time.Time) {
	before := h.scores[key]
	delete(h.scores, key)
	h.touchScore(ctx, key, before, nil, now)
}

func (h *Scheduler) touchScore(ctx context.Context, score types.NamespacedName, before, after *clusterv1alpha1.AddOnPlacementScore, now time.Time) {
	c := h.fleet.Cluster(score.Namespace)
	if c == nil {
		return
	}
	for _, set := range h.fleet.SetsOf(c.Name()) {
		h.touchSet(set, func(key types.NamespacedName, s *scheduled) bool {
			return h.asked(key, s, now, func() (bool, uint64) {
				return s.program.TouchesScore(ctx, c, score.Name, before, after, h.seen(key, s, c.Name(), now))
			})
		})
	}
}

// touchSet marks the placements that choose from a set, if a change concerns them; if concerns is nil, it marks all of them.
func (h *Scheduler) touchSet(set string, concerns func(types.NamespacedName, *scheduled) bool) {
	for namespace := range h.namespaces[set] {
		for key, s := range h.byNamespace[namespace] {
			if !s.program.ChoosesFrom(set) {
				continue
			}
			if !h.dirty[key] && (concerns == nil || guarded(func() bool { return concerns(key, s) })) {
				h.dirty[key] = true
			}
		}
	}
}

// touchNamespaces marks the placements of all namespaces that have bound a set. A placement that does not choose from the set may report that none
// of its sets is bound, which differs from no set being bound.
func (h *Scheduler) touchNamespaces(set string) {
	for namespace := range h.namespaces[set] {
		h.touchNamespace(namespace)
	}
}

func (h *Scheduler) touchNamespace(namespace string) {
	for key := range h.byNamespace[namespace] {
		h.dirty[key] = true
	}
}

// Next returns when Round must be called if nothing changes before, or zero for never. It is in the past if there is something to do.
func (h *Scheduler) Next(now time.Time) (next time.Time) {
	for key, s := range h.placements {
		switch {
		case s.writing:
		case h.dirty[key]:
			next = spec.Earlier(next, later(now, h.notBefore(key, s)))
		case !s.again.IsZero():
			next = spec.Earlier(next, later(s.again, h.notBefore(key, s)))
		}
	}
	return next
}

// Round schedules the placements that changes have affected or that are due, and returns their results, the older placements first. Each result
// must be written, and Written must be called; until then, its placement is in no other round. Results that change nothing are not returned. An
// error may be returned besides results: of placements that could not be scheduled, which stay as they are, or of the context.
func (h *Scheduler) Round(ctx context.Context, now time.Time) (results map[types.NamespacedName]*run.Result, err error) {
	h.spent.forget(now)
	var jobs []Job
	for key, s := range h.placements {
		if s.writing || (!h.dirty[key] && (s.again.IsZero() || now.Before(s.again))) {
			continue
		}
		jobs = append(jobs, Job{s.program, run.Snapshot{
			Now: now, Placement: s.placement, Decisions: slices.Collect(maps.Values(h.decisions[key])),
			Bindings: slices.Collect(maps.Keys(h.bindings[key.Namespace])), Clusters: h.fleet, Scores: h.scores, Timing: h.Timing,
		}, func() bool { return now.Before(h.notBefore(key, s)) }})
	}
	results = map[types.NamespacedName]*run.Result{}
	err = Round(ctx, h.loads, jobs, func(j Job, r *run.Result) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		key := types.NamespacedName{Namespace: j.State.Placement.Namespace, Name: j.State.Placement.Name}
		s := h.placements[key]
		delete(h.dirty, key)
		s.paused = later(s.paused, now.Add(pause(r.Cost, placementPause)))
		h.spent.add(key.Namespace, r.Cost, now)
		s.again, s.status, s.expected = r.Again, &r.Status, map[string]run.Step{}
		for _, d := range j.State.Decisions {
			s.expected[d.Name] = run.Step{Labels: run.OwnLabels(d), Decisions: d.Status.Decisions}
		}
		for _, step := range r.Steps {
			switch step.Action {
			case run.Delete:
				delete(s.expected, step.Name)
			case run.Relabel:
				step.Decisions = s.expected[step.Name].Decisions
				fallthrough
			default:
				s.expected[step.Name] = step
			}
		}
		s.writing = len(r.Steps) > 0 || !equality.Semantic.DeepEqual(r.Status, s.placement.Status)
		if s.writing {
			results[key] = r
		}
		return nil
	})
	err, h.faults = errors.Join(append(h.faults, err)...), nil
	return results, err
}

// Written reports that a result was written, or could not be: then the placement is in the next round again.
func (h *Scheduler) Written(key types.NamespacedName, err error) {
	s := h.placements[key]
	if s == nil {
		return
	}
	s.writing = false
	if err != nil {
		h.dirty[key] = true
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func put[K, N comparable, V any](m map[K]map[N]V, key K, name N, value V) {
	if m[key] == nil {
		m[key] = map[N]V{}
	}
	m[key][name] = value
}

func drop[K, N comparable, V any](m map[K]map[N]V, key K, name N) {
	delete(m[key], name)
	if len(m[key]) == 0 {
		delete(m, key)
	}
}
