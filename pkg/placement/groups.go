// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
)

// group is a decision group with its clusters, which are in one or more slices.
type group struct {
	name   string
	slices []slice
}

// slice is one PlacementDecision.
type slice struct {
	name      string
	decisions []clusterv1beta1.ClusterDecision
}

func (g *group) count() (n int) {
	for i := range g.slices {
		n += len(g.slices[i].decisions)
	}
	return n
}

// divide divides the chosen clusters into groups and slices. There is always a slice. If the clusters could not be chosen, the existing ones stay.
func (r *run) divide() []group {
	if r.problem != nil || r.failure != nil {
		return r.kept()
	}
	var parts []picks
	length := r.program.perGroup.of(len(r.chosen), r.maxGroups())
	rest := r.chosen
	for i := range r.program.groups {
		g := &r.program.groups[i]
		var in, out []pick
		for _, p := range rest {
			if g.matches(p.cluster) {
				in = append(in, p)
			} else {
				out = append(out, p)
			}
		}
		parts, rest = appendPicks(parts, g.name, in, length), out
	}
	parts = appendPicks(parts, "", rest, length)
	if len(parts) == 0 {
		parts = []picks{{}}
	}
	groups := make([]group, len(parts))
	number := 1
	for i, part := range parts {
		groups[i].name = part.group
		for range max(1, (len(part.picks)+sliceSize-1)/sliceSize) {
			groups[i].slices = append(groups[i].slices, slice{name: r.decisionName(number)})
			number++
		}
		r.fill(groups[i].slices, part.picks)
	}
	return groups
}

// maxGroups returns the number of groups that fit into the status, apart from those that are not full.
func (r *run) maxGroups() int {
	group, slice := groupBytes, len(r.decisionName(maxGroups))+len(`"",`)
	for i := range r.program.groups {
		group = max(group, groupBytes+len(r.program.groups[i].name))
	}
	room := (statusBytes - len(r.chosen)/sliceSize*slice) / (group + slice)
	// Every name may have one group that is not full, and so may the rest.
	return max(min(room, maxGroups)-len(r.program.groups)-1, 1)
}

// picks are the clusters of one group.
type picks struct {
	group string
	picks []pick
}

func appendPicks(parts []picks, group string, all []pick, length int) []picks {
	for part := range slices.Chunk(all, max(length, 1)) {
		parts = append(parts, picks{group, part})
	}
	return parts
}

func (r *run) decisionName(number int) string {
	return r.state.Placement.Name + "-decision-" + strconv.Itoa(number)
}

// fill divides the clusters of a group into its slices. A cluster stays in its slice, if that belongs to the group: then adding or removing a
// cluster changes one slice, and not all slices after it. The order by scores is kept over all slices.
func (r *run) fill(into []slice, all []pick) {
	if len(into) == 1 || r.program.byScore {
		for i := range into {
			end := min(len(all), sliceSize)
			into[i].decisions, all = r.decisions(all[:end]), all[end:]
		}
		return
	}
	byName := make(map[string]int, len(into))
	for i := range into {
		byName[into[i].name] = i
	}
	stay, move := make([][]pick, len(into)), make([]pick, 0, len(all))
	for _, p := range all {
		if now := r.current[p.cluster.Name()]; now != nil {
			if i, found := byName[now.Name]; found && len(stay[i]) < sliceSize {
				stay[i] = append(stay[i], p)
				continue
			}
		}
		move = append(move, p)
	}
	for i := range into {
		if come := min(len(move), sliceSize-len(stay[i])); come > 0 {
			stay[i] = append(stay[i], move[:come]...)
			slices.SortFunc(stay[i], func(a, b pick) int { return compareName(a.cluster, b.cluster.Name()) })
			move = move[come:]
		}
		into[i].decisions = r.decisions(stay[i])
	}
}

func (r *run) decisions(all []pick) []clusterv1beta1.ClusterDecision {
	decisions := make([]clusterv1beta1.ClusterDecision, len(all))
	for i := range all {
		decisions[i].ClusterName = all[i].cluster.Name()
		if r.program.byScore {
			decisions[i].Score = all[i].score
		}
	}
	return decisions
}

// kept returns the last valid decisions, without the clusters that the placement must not have any more. A failure may concern the sets; then only
// clusters that are gone or being deleted are removed.
func (r *run) kept() []group {
	return r.existing(func(name string) bool {
		if r.failure != nil {
			c := r.state.Clusters.Cluster(name)
			return c != nil && !c.deleting()
		}
		i, found := slices.BinarySearchFunc(r.clusters, name, compareName)
		return found && !r.clusters[i].deleting()
	})
}

// asTheyAre returns the existing decisions.
func (r *run) asTheyAre() []group { return r.existing(func(string) bool { return true }) }

// existing returns the existing decisions, with the clusters to keep. Empty slices are dropped, except for the last one.
func (r *run) existing(keep func(cluster string) bool) []group {
	type indexed struct {
		group
		index int
	}
	var all []indexed
	byIndex := map[int]int{}
	seen := map[string]bool{}
	for _, d := range sorted(r.state.Decisions) {
		s := slice{name: d.Name, decisions: []clusterv1beta1.ClusterDecision{}}
		for _, one := range d.Status.Decisions {
			if keep(one.ClusterName) && !seen[one.ClusterName] {
				seen[one.ClusterName] = true
				s.decisions = append(s.decisions, one)
			}
		}
		if len(s.decisions) == 0 || len(s.decisions) > sliceSize {
			continue
		}
		index, _ := strconv.Atoi(d.Labels[clusterv1beta1.DecisionGroupIndexLabel])
		at, known := byIndex[index]
		if !known {
			at = len(all)
			byIndex[index] = at
			all = append(all, indexed{group{name: d.Labels[clusterv1beta1.DecisionGroupNameLabel]}, index})
		}
		all[at].slices = append(all[at].slices, s)
	}
	slices.SortStableFunc(all, func(a, b indexed) int { return cmp.Compare(a.index, b.index) })
	groups := make([]group, len(all))
	for i := range all {
		groups[i] = all[i].group
	}
	if len(groups) == 0 {
		groups = []group{{slices: []slice{{r.decisionName(1), []clusterv1beta1.ClusterDecision{}}}}}
	}
	return groups
}

// sorted returns decisions in the order of their numbers.
func sorted(decisions []*clusterv1beta1.PlacementDecision) []*clusterv1beta1.PlacementDecision {
	return slices.SortedFunc(slices.Values(decisions), func(a, b *clusterv1beta1.PlacementDecision) int {
		return compareNumbered(a.Name, b.Name)
	})
}

func compareNumbered(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

func namesOf(groups []group) []string {
	names := []string{}
	for i := range groups {
		for j := range groups[i].slices {
			for k := range groups[i].slices[j].decisions {
				names = append(names, groups[i].slices[j].decisions[k].ClusterName)
			}
		}
	}
	slices.Sort(names)
	return names
}

// scoresDue returns the time at which the decisions may be written, if only scores and their order would change and they were written a short while
// ago. It is zero if they may be written now.
func (r *run) scoresDue(groups []group) time.Time {
	last := r.state.Placement.Status.LastScoreUpdateTime
	if !r.program.byScore || last == nil || r.problem != nil || r.failure != nil {
		return time.Time{}
	}
	due := last.Add(r.program.scoreRateLimit)
	// A clock that was set back must not delay the scores for longer than the limit.
	if !r.state.Now.Before(due) || last.After(r.state.Now.Add(r.program.scoreRateLimit)) {
		return time.Time{}
	}
	now := r.asTheyAre()
	if len(now) != len(groups) || !maps.Equal(groupNames(now), groupNames(groups)) {
		return time.Time{}
	}
	for i := range now {
		if now[i].name != groups[i].name || now[i].count() != groups[i].count() || len(now[i].slices) != len(groups[i].slices) {
			return time.Time{}
		}
	}
	return due
}

// groupNames returns the group name of each cluster.
func groupNames(groups []group) map[string]string {
	names := map[string]string{}
	for i := range groups {
		for j := range groups[i].slices {
			for k := range groups[i].slices[j].decisions {
				names[groups[i].slices[j].decisions[k].ClusterName] = groups[i].name
			}
		}
	}
	return names
}
