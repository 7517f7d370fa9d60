// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"maps"
	"slices"
	"strconv"

	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
)

// Action is the action of a step.
type Action string

// The actions.
const (
	// Create creates a PlacementDecision with labels, owner and clusters.
	Create Action = "Create"
	// Update writes the clusters, and the labels and the owner if they differ.
	Update Action = "Update"
	// Relabel writes the labels and the owner only.
	Relabel Action = "Relabel"
	// Delete deletes it.
	Delete Action = "Delete"
)

// Step is a write of a PlacementDecision.
type Step struct {
	Action Action
	// Name is the name of the PlacementDecision.
	Name string
	// Labels are the labels of the placement and the group. Other labels are not changed.
	Labels map[string]string
	// Decisions are all clusters that it has after the step. It is never nil.
	Decisions []clusterv1beta1.ClusterDecision
	// Events are the events about the placement to record after the step.
	Events []Event
}

// decisionState is the current and the desired state of a PlacementDecision.
type decisionState struct {
	name   string
	now    *clusterv1beta1.PlacementDecision
	labels map[string]string
	want   []clusterv1beta1.ClusterDecision
	wanted bool

	// before are the nodes that must be written first, since clusters move there from here; after is the reverse.
	before map[int]bool
	after  []int
	done   bool
	// gained reports that the clusters that move here are here, while those that leave are still here, too.
	gained bool
}

// plan orders the writes such that a cluster which moves from one PlacementDecision to another is in at least one of them at any time: first in the
// new one, then not in the old one. If two exchange clusters, those that leave one of them stay a little longer; if there are too many for that,
// they are put into a temporary PlacementDecision.
func plan(placement *clusterv1beta1.Placement, decisions []*clusterv1beta1.PlacementDecision, groups []group) (steps []Step) {
	nodes := decisionStates(placement, decisions, groups)
	home, highest := map[string]int{}, 0
	for i := range nodes {
		if nodes[i].wanted {
			highest++
		}
		for j := range nodes[i].want {
			home[nodes[i].want[j].ClusterName] = i
		}
	}
	for i := range nodes {
		n := &nodes[i]
		for _, name := range n.misplaced(home, i) {
			if to := home[name]; !n.before[to] && !holds(nodes[to].now, name) {
				if n.before == nil {
					n.before = map[int]bool{}
				}
				n.before[to] = true
				nodes[to].after = append(nodes[to].after, i)
			}
		}
	}
	free := func(i int) {
		for _, waiting := range nodes[i].after {
			delete(nodes[waiting].before, i)
		}
		nodes[i].gained = true
	}
	var bridges []Step
	for {
		progress, blocked := false, -1
		for i := range nodes {
			switch n := &nodes[i]; {
			case n.done:
			case len(n.before) == 0:
				if step, needed := n.step(placement); needed {
					steps = append(steps, step)
				}
				free(i)
				n.done, progress = true, true
			case blocked < 0 && !n.gained && n.wanted && len(n.after) > 0:
				blocked = i
			}
		}
		if progress {
			continue
		}
		if blocked < 0 {
			break
		}
		// They wait for each other.
		n := &nodes[blocked]
		var stay []clusterv1beta1.ClusterDecision
		for _, one := range n.now.Status.Decisions {
			if to, moves := home[one.ClusterName]; moves && n.before[to] {
				stay = append(stay, one)
			}
		}
		if len(n.want)+len(stay) <= sliceSize {
			steps = append(steps, Step{Action: Update, Name: n.name, Labels: n.nowLabels(), Decisions: slices.Concat(n.want, stay)})
		} else {
			name := freeName(placement, highest, nodes)
			highest++
			steps = append(steps, Step{Action: Create, Name: name, Labels: n.nowLabels(), Decisions: stay})
			bridges = append(bridges, Step{Action: Delete, Name: name, Labels: n.nowLabels(), Decisions: []clusterv1beta1.ClusterDecision{}})
			clear(n.before)
			nodes = append(nodes, decisionState{name: name, done: true})
			continue
		}
		free(blocked)
	}
	return append(steps, bridges...)
}

// decisionStates returns the desired decisions, in their order, and after them those to delete.
func decisionStates(
	placement *clusterv1beta1.Placement, decisions []*clusterv1beta1.PlacementDecision, groups []group,
) (nodes []decisionState) {
	byName := map[string]*clusterv1beta1.PlacementDecision{}
	for _, d := range decisions {
		byName[d.Name] = d
	}
	for i := range groups {
		labels := map[string]string{
			clusterv1beta1.PlacementLabel:          placement.Name,
			clusterv1beta1.DecisionGroupIndexLabel: strconv.Itoa(i),
			clusterv1beta1.DecisionGroupNameLabel:  groups[i].name,
		}
		for _, s := range groups[i].slices {
			nodes = append(nodes, decisionState{name: s.name, now: byName[s.name], labels: labels, want: s.decisions, wanted: true})
			delete(byName, s.name)
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(byName), compareNumbered) {
		nodes = append(nodes, decisionState{name: name, now: byName[name]})
	}
	return nodes
}

// misplaced returns the clusters that are here and should be elsewhere.
func (n *decisionState) misplaced(home map[string]int, here int) (names []string) {
	if n.now == nil {
		return nil
	}
	for i := range n.now.Status.Decisions {
		name := n.now.Status.Decisions[i].ClusterName
		if to, stays := home[name]; stays && to != here {
			names = append(names, name)
		}
	}
	return names
}

func holds(d *clusterv1beta1.PlacementDecision, cluster string) bool {
	return d != nil && slices.ContainsFunc(d.Status.Decisions, func(one clusterv1beta1.ClusterDecision) bool {
		return one.ClusterName == cluster
	})
}

// nowLabels returns the labels of its current group, until its final write.
func (n *decisionState) nowLabels() map[string]string {
	labels := maps.Clone(n.labels)
	for key := range labels {
		if value, has := n.now.Labels[key]; has {
			labels[key] = value
		}
	}
	return labels
}

// step returns the step to the desired state, if anything must be written.
func (n *decisionState) step(p *clusterv1beta1.Placement) (step Step, needed bool) {
	step = Step{Name: n.name, Labels: n.labels, Decisions: n.want}
	switch {
	case !n.wanted:
		step.Action, step.Labels, step.Decisions = Delete, OwnLabels(n.now), []clusterv1beta1.ClusterDecision{}
	case n.now == nil:
		step.Action = Create
	// Readers expect a status with a list.
	case n.gained || n.now.Status.Decisions == nil || !slices.Equal(n.now.Status.Decisions, n.want):
		step.Action = Update
	case !Owned(n.now, p) || !maps.Equal(OwnLabels(n.now), n.labels):
		step.Action = Relabel
	default:
		return step, false
	}
	return step, true
}

// freeName returns the name for a temporary decision.
func freeName(placement *clusterv1beta1.Placement, highest int, nodes []decisionState) string {
	for {
		highest++
		name := decisionName(placement, highest)
		if !slices.ContainsFunc(nodes, func(n decisionState) bool { return n.name == name }) {
			return name
		}
	}
}
