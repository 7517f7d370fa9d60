// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/placement/fleet"
)

const (
	// sliceSize is the maximum number of clusters in one PlacementDecision.
	sliceSize = 100
	// maxGroups is the maximum number of groups in the status.
	maxGroups = 2048
	// statusBytes is the maximum size of all groups in the status: less than the room for the status of a Placement (pkg/admission/objectsize),
	// since there are conditions as well. groupBytes is the size of one group in JSON, without its name and those of its decisions.
	statusBytes = 160 << 10
	groupBytes  = len(`{"decisionGroupIndex":1234,"decisionGroupName":"","decisions":[],"clusterCount":1234567},`)
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

// layout divides the chosen clusters of an evaluation into groups and PlacementDecisions.
type layout struct{ *evaluation }

// divide divides the chosen clusters into groups and slices. There is always a slice. If the clusters could not be chosen, the existing ones stay.
func (l layout) divide() []group {
	if l.problem != nil || l.failure != nil {
		return l.kept()
	}
	var parts []picks
	length := l.program.PerGroup.Of(len(l.chosen), l.maxGroups())
	rest := l.chosen
	for i := range l.program.Groups {
		g := &l.program.Groups[i]
		var in, out []pick
		for _, p := range rest {
			if g.Matches(p.cluster) {
				in = append(in, p)
			} else {
				out = append(out, p)
			}
		}
		parts, rest = appendPicks(parts, g.Name, in, length), out
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
			groups[i].slices = append(groups[i].slices, slice{name: l.decisionName(number)})
			number++
		}
		l.fill(groups[i].slices, part.picks)
	}
	return groups
}

// maxGroups returns the number of groups that fit into the status, apart from those that are not full.
func (l layout) maxGroups() int {
	group, slice := groupBytes, len(l.decisionName(maxGroups))+len(`"",`)
	for i := range l.program.Groups {
		group = max(group, groupBytes+len(l.program.Groups[i].Name))
	}
	room := (statusBytes - len(l.chosen)/sliceSize*slice) / (group + slice)
	// Every name may have one group that is not full, and so may the rest.
	return max(min(room, maxGroups)-len(l.program.Groups)-1, 1)
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

func (l layout) decisionName(number int) string { return decisionName(l.state.Placement, number) }

// decisionName returns the name of a PlacementDecision of a placement.
func decisionName(p *clusterv1beta1.Placement, number int) string {
	return p.Name + "-decision-" + strconv.Itoa(number)
}

// fill divides the clusters of a group into its slices. A cluster stays in its slice, if that belongs to the group: then adding or removing a
// cluster changes one slice, and not all slices after it. The order by scores is kept over all slices.
func (l layout) fill(into []slice, all []pick) {
	if len(into) == 1 || l.program.ByScore {
		for i := range into {
			end := min(len(all), sliceSize)
			into[i].decisions, all = l.decisions(all[:end]), all[end:]
		}
		return
	}
	byName := make(map[string]int, len(into))
	for i := range into {
		byName[into[i].name] = i
	}
	stay, move := make([][]pick, len(into)), make([]pick, 0, len(all))
	for _, p := range all {
		if now := l.current[p.cluster.Name()]; now != nil {
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
			slices.SortFunc(stay[i], func(a, b pick) int { return fleet.CompareName(a.cluster, b.cluster.Name()) })
			move = move[come:]
		}
		into[i].decisions = l.decisions(stay[i])
	}
}

func (l layout) decisions(all []pick) []clusterv1beta1.ClusterDecision {
	decisions := make([]clusterv1beta1.ClusterDecision, len(all))
	for i := range all {
		decisions[i].ClusterName = all[i].cluster.Name()
		if l.program.ByScore {
			decisions[i].Score = all[i].score
		}
	}
	return decisions
}

// kept returns the last valid decisions, without the clusters that the placement must not have any more. A failure may concern the sets; then only
// clusters that are gone or being deleted are removed.
func (l layout) kept() []group {
	return l.existing(func(name string) bool {
		if l.failure != nil {
			c := l.state.Clusters.Cluster(name)
			return c != nil && !c.Deleting()
		}
		i, found := slices.BinarySearchFunc(l.clusters, name, fleet.CompareName)
		return found && !l.clusters[i].Deleting()
	})
}

// asTheyAre returns the existing decisions.
func (l layout) asTheyAre() []group { return l.existing(func(string) bool { return true }) }

// existing returns the existing decisions, with the clusters to keep. Empty slices are dropped, except for the last one.
func (l layout) existing(keep func(cluster string) bool) []group {
	type indexed struct {
		group
		index int
	}
	var all []indexed
	byIndex := map[int]int{}
	seen := map[string]bool{}
	for _, d := range sorted(l.state.Decisions) {
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
		groups = []group{{slices: []slice{{l.decisionName(1), []clusterv1beta1.ClusterDecision{}}}}}
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
func (l layout) scoresDue(groups []group) time.Time {
	last := l.state.Placement.Status.LastScoreUpdateTime
	if !l.program.ByScore || last == nil || l.problem != nil || l.failure != nil {
		return time.Time{}
	}
	due := last.Add(l.program.ScoreRateLimit)
	// A clock that was set back must not delay the scores for longer than the limit.
	if !l.state.Now.Before(due) || last.After(l.state.Now.Add(l.program.ScoreRateLimit)) {
		return time.Time{}
	}
	now := l.asTheyAre()
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
