// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"container/heap"
	"encoding/binary"
	"slices"

	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/placement/spec"
)

// topology is the state of one spread constraint for the clusters that have passed.
type topology struct {
	maxSkew int
	strict  bool
	// counts are the chosen clusters in each topology, and atCount the number of topologies with each count.
	counts, atCount []int
	least           int
	// waiting are the kinds of clusters that would make the skew too great, until the least count rises.
	waiting []int32
}

// excess returns by how many clusters one more in a topology would exceed the skew. A cluster that is in no topology comes last.
func (t *topology) excess(value int32) int {
	if value < 0 {
		return len(t.counts) + 1<<30
	}
	return max(0, t.counts[value]+1-t.least-t.maxSkew)
}

// add counts a chosen cluster, and reports whether the least count has risen.
func (t *topology) add(value int32) (risen bool) {
	if value < 0 {
		return false
	}
	count := t.counts[value]
	t.counts[value]++
	t.atCount[count]--
	if len(t.atCount) == count+1 {
		t.atCount = append(t.atCount, 0)
	}
	t.atCount[count+1]++
	if count == t.least && t.atCount[count] == 0 {
		t.least++
		return true
	}
	return false
}

// topologyGroup has the clusters that are in the same topology for every constraint, in the order of precedence.
type topologyGroup struct {
	values  []int32
	members []int32
}

// spread chooses clusters in their order, as far as the constraints allow. The first constraint is the most important one.
//
// The next cluster is always the best one that does not exceed a skew. If all exceed one, it is the cluster that exceeds the limits by the least:
// first of the first constraint, then of the next, and the best one among equals. A cluster that would break a constraint with DoNotSchedule is not
// chosen; neither is one that is in no topology of such a constraint.
func (r *evaluation) spread(order []int32, limit int) []int32 {
	kinds, topologies := r.topologies(order)
	ready := &indexHeap{less: func(a, b int32) bool { return r.compare(kinds[a].members[0], kinds[b].members[0]) < 0 }}
	for i := range kinds {
		ready.items = append(ready.items, int32(i))
	}
	heap.Init(ready)
	taken := make([]int32, 0, limit)
	for len(taken) < limit {
		next := int32(-1)
		for next < 0 && ready.Len() > 0 {
			candidate := heap.Pop(ready).(int32)
			if t := exceeded(topologies, kinds[candidate].values); t != nil {
				t.waiting = append(t.waiting, candidate)
			} else {
				next = candidate
			}
		}
		if next < 0 {
			next = r.minExceeding(kinds, topologies)
			if next < 0 {
				break
			}
		}
		k := &kinds[next]
		taken = append(taken, k.members[0])
		k.members = k.members[1:]
		if len(k.members) > 0 {
			heap.Push(ready, next)
		}
		for i := range topologies {
			if t := &topologies[i]; t.add(k.values[i]) {
				for _, waiting := range t.waiting {
					heap.Push(ready, waiting)
				}
				t.waiting = t.waiting[:0]
			}
		}
	}
	return taken
}

// steadySpread returns a spread that does not change when it is computed again. Which clusters fit depends on which were chosen before, so a
// cluster that is preferred because it was just chosen can make room for others, and these for others again.
func (r *evaluation) steadySpread(limit int) []int32 {
	const rounds = 8
	weight := r.steadyWeight()
	shown := r.totals
	defer func() { r.totals = shown }()
	r.totals = slices.Clone(shown)
	first, now := make([]bool, len(r.passed)), make([]bool, len(r.passed))
	for i, c := range r.passed {
		first[i] = r.isCurrent(c.Name())
	}
	copy(now, first)
	for round := 0; ; round++ {
		taken := r.spread(r.order(len(r.passed)), limit)
		then := make([]bool, len(r.passed))
		for _, i := range taken {
			then[i] = true
		}
		// A result that returns to the start is stable enough.
		if weight == 0 || round == rounds || slices.Equal(then, now) || slices.Equal(then, first) {
			return taken
		}
		for i := range then {
			switch {
			case then[i] && !now[i]:
				r.totals[i] += weight
			case now[i] && !then[i]:
				r.totals[i] -= weight
			}
		}
		now = then
	}
}

// exceeded returns the first constraint that a cluster of this kind would break now.
func exceeded(topologies []topology, values []int32) *topology {
	for i := range topologies {
		if topologies[i].excess(values[i]) > 0 {
			return &topologies[i]
		}
	}
	return nil
}

// minExceeding returns one of the waiting kinds, or none if constraints with DoNotSchedule exclude all of them.
func (r *evaluation) minExceeding(kinds []topologyGroup, topologies []topology) int32 {
	best, where, at := int32(-1), 0, 0
	for i := range topologies {
		for j, candidate := range topologies[i].waiting {
			values, order := kinds[candidate].values, 0
			allowed := true
			for k := range topologies {
				t := &topologies[k]
				excess := t.excess(values[k])
				if t.strict && excess > 0 {
					allowed = false
					break
				}
				if best >= 0 {
					order = cmp.Or(order, cmp.Compare(excess, t.excess(kinds[best].values[k])))
				}
			}
			if !allowed {
				continue
			}
			if best < 0 || cmp.Or(order, r.compare(kinds[candidate].members[0], kinds[best].members[0])) < 0 {
				best, where, at = candidate, i, j
			}
		}
	}
	if best >= 0 {
		topologies[where].waiting = slices.Delete(topologies[where].waiting, at, at+1)
	}
	return best
}

// topologies sorts the clusters into kinds. A cluster without the label or the claim is in no topology.
func (r *evaluation) topologies(order []int32) ([]topologyGroup, []topology) {
	constraints := r.program.Spread
	topologies := make([]topology, len(constraints))
	numbers := make([]map[string]int32, len(constraints))
	for i := range topologies {
		topologies[i].maxSkew = int(constraints[i].MaxSkew)
		topologies[i].strict = constraints[i].WhenUnsatisfiable == clusterv1beta1.DoNotSchedule
		numbers[i] = map[string]int32{}
	}
	var kinds []topologyGroup
	byValues := map[string]int32{}
	values := make([]int32, len(constraints))
	key := make([]byte, 4*len(constraints))
	for _, index := range order {
		for i := range constraints {
			values[i] = -1
			if value, found := spec.TopologyValue(&constraints[i], r.passed[index]); found {
				number, known := numbers[i][value]
				if !known {
					number = int32(len(numbers[i]))
					numbers[i][value] = number
				}
				values[i] = number
			}
			binary.LittleEndian.PutUint32(key[4*i:], uint32(values[i]))
		}
		which, known := byValues[string(key)]
		if !known {
			which = int32(len(kinds))
			byValues[string(key)] = which
			kinds = append(kinds, topologyGroup{values: slices.Clone(values)})
		}
		kinds[which].members = append(kinds[which].members, index)
	}
	for i := range topologies {
		topologies[i].counts = make([]int, len(numbers[i]))
		topologies[i].atCount = []int{len(numbers[i])}
	}
	return kinds, topologies
}
