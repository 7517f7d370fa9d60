// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Loads counts the placements whose decisions have a cluster, for each cluster. It is not safe for concurrent use.
type Loads struct {
	counts map[string]int
	// atCount is the number of clusters with each count, so that the highest one is known without checking all clusters.
	atCount []int
	// clusters are the clusters of each placement, ordered by name.
	clusters map[types.NamespacedName][]string
}

// NewLoads returns empty Loads.
func NewLoads() *Loads {
	return &Loads{counts: map[string]int{}, clusters: map[types.NamespacedName][]string{}}
}

// Set replaces the clusters of a placement. An empty list removes the placement.
func (l *Loads) Set(placement types.NamespacedName, clusters []string) {
	for _, name := range l.clusters[placement] {
		l.add(name, -1)
	}
	delete(l.clusters, placement)
	if len(clusters) == 0 {
		return
	}
	clusters = slices.Compact(slices.Sorted(slices.Values(clusters)))
	l.clusters[placement] = clusters
	for _, name := range clusters {
		l.add(name, 1)
	}
}

func (l *Loads) add(cluster string, by int) {
	before := l.counts[cluster]
	after := before + by
	if before > 0 {
		l.atCount[before]--
	}
	if after == 0 {
		delete(l.counts, cluster)
		return
	}
	l.counts[cluster] = after
	for len(l.atCount) <= after {
		l.atCount = append(l.atCount, 0)
	}
	l.atCount[after]++
}

// Has reports whether the last decisions of a placement have a cluster.
func (l *Loads) Has(placement types.NamespacedName, cluster string) bool {
	_, has := slices.BinarySearch(l.clusters[placement], cluster)
	return has
}

// Others returns the load by all placements except one.
func (l *Loads) Others(placement types.NamespacedName) Load {
	o := &others{loads: l, own: l.clusters[placement]}
	for o.most = len(l.atCount) - 1; o.most > 0 && l.atCount[o.most] == 0; {
		o.most--
	}
	o.most = max(o.most, 0)
	if len(o.own) == 0 {
		return o
	}
	ownAtMost := 0
	for _, name := range o.own {
		if l.counts[name] == o.most {
			ownAtMost++
		}
	}
	if ownAtMost == l.atCount[o.most] {
		// They all have one less without this placement, and the next ones have no more than that.
		o.most--
	}
	return o
}

type others struct {
	loads *Loads
	own   []string
	most  int
}

func (o *others) Most() int { return o.most }

func (o *others) Count(cluster string) int {
	count := o.loads.counts[cluster]
	if count == 0 || len(o.own) == 0 {
		return count
	}
	if _, own := slices.BinarySearch(o.own, cluster); own {
		count--
	}
	return count
}
