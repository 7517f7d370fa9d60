// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package membership determines which cluster is in which set. It is an index that gets one change at a time and returns the members that the
// change affects: the cost of a change is proportional to the sets that it affects, never to sets × clusters.
package membership

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/selector"
	"github.com/clusterhub/clusterhub/pkg/apis/view"
)

// Change is a change of one member. The member of a deletion has the current state of the cluster.
type Change struct {
	// Type is Added, Modified or Deleted.
	Type   watch.EventType
	Member *view.ClusterSetMember
}

// Index has the clusters, the sets, and their members. It is not safe for concurrent use. Returned members are new objects for the caller; they
// share the labels of the cluster.
type Index struct {
	clusters map[string]*clusterEntry
	sets     map[string]*setEntry
	// clustersByLabel finds the clusters that a changed set may select.
	clustersByLabel map[string]map[string][]*clusterEntry
	// setsByLabel, setsByKey and setsAny find the sets that may select a changed cluster. A set is in one of them, under one requirement of its
	// selector (its anchor).
	setsByLabel map[label][]*setEntry
	setsByKey   map[string][]*setEntry
	setsAny     []*setEntry
}

type label struct{ key, value string }

type clusterEntry struct {
	name    string
	uid     types.UID
	created metav1.Time
	labels  map[string]string
	status  view.ClusterSetMemberStatus
	// sets are the sets that the cluster is in, ordered by name.
	sets []*setEntry
}

type setEntry struct {
	name       string
	uid        types.UID
	created    metav1.Time
	selector   labels.Selector
	selectedBy view.SelectedBy
	anchor     anchor
	// clusters are ordered by name.
	clusters []*clusterEntry
}

// New returns an empty index.
func New() *Index {
	return &Index{
		clusters:        map[string]*clusterEntry{},
		sets:            map[string]*setEntry{},
		clustersByLabel: map[string]map[string][]*clusterEntry{},
		setsByLabel:     map[label][]*setEntry{},
		setsByKey:       map[string][]*setEntry{},
	}
}

// Members calls f with every member, in no particular order.
func (x *Index) Members(f func(*view.ClusterSetMember)) {
	for _, c := range x.clusters {
		for _, s := range c.sets {
			f(newMember(c, s))
		}
	}
}

// SetCluster adds or replaces a cluster and returns the members that this changes, ordered by set.
func (x *Index) SetCluster(obj *cluster.ManagedCluster) []Change {
	entry := x.clusters[obj.Name]
	status := statusOf(obj)
	if entry == nil {
		entry = &clusterEntry{name: obj.Name}
		x.clusters[obj.Name] = entry
	}
	relabelled := !maps.Equal(entry.labels, obj.Labels)
	reborn := entry.uid != obj.UID
	if !relabelled && !reborn && statusEqual(&entry.status, &status) {
		return nil
	}
	entry.uid, entry.created, entry.status = obj.UID, obj.CreationTimestamp, status
	if relabelled {
		x.unindexLabels(entry)
		entry.labels = obj.Labels
		x.indexLabels(entry)
	}
	return x.reselect(entry)
}

// DeleteCluster removes a cluster and returns the removed members, ordered by set.
func (x *Index) DeleteCluster(name string) []Change {
	entry := x.clusters[name]
	if entry == nil {
		return nil
	}
	delete(x.clusters, name)
	x.unindexLabels(entry)
	changes := make([]Change, 0, len(entry.sets))
	for _, s := range entry.sets {
		s.removeCluster(entry)
		changes = append(changes, Change{watch.Deleted, newMember(entry, s)})
	}
	return changes
}

// reselect computes the sets of a cluster again and returns the difference.
func (x *Index) reselect(entry *clusterEntry) []Change {
	var changes []Change
	before, after := entry.sets, x.setsOf(entry)
	entry.sets = slices.Clip(slices.Clone(after))
	for len(before) > 0 || len(after) > 0 {
		switch {
		case len(after) == 0 || (len(before) > 0 && before[0].name < after[0].name):
			before[0].removeCluster(entry)
			changes = append(changes, Change{watch.Deleted, newMember(entry, before[0])})
			before = before[1:]
		case len(before) == 0 || after[0].name < before[0].name:
			after[0].addCluster(entry)
			changes = append(changes, Change{watch.Added, newMember(entry, after[0])})
			after = after[1:]
		default:
			changes = append(changes, Change{watch.Modified, newMember(entry, after[0])})
			before, after = before[1:], after[1:]
		}
	}
	return changes
}

// setsOf returns the sets that select a cluster, ordered by name.
func (x *Index) setsOf(entry *clusterEntry) []*setEntry {
	var found []*setEntry
	match := func(candidates []*setEntry) {
		for _, s := range candidates {
			if s.selector.Matches(labels.Set(entry.labels)) {
				found = append(found, s)
			}
		}
	}
	for k, v := range entry.labels {
		match(x.setsByLabel[label{k, v}])
		match(x.setsByKey[k])
	}
	match(x.setsAny)
	slices.SortFunc(found, compareSets)
	return slices.Compact(found)
}

// SetSet adds or replaces a set and returns the members that this changes, ordered by cluster. A set with an invalid selector (which validation
// refuses) selects nothing.
func (x *Index) SetSet(obj *cluster.ManagedClusterSet) []Change {
	sel, err := selector.For(obj)
	if err != nil {
		sel = labels.Nothing()
	}
	typ, text := selector.Describe(obj)
	by := view.SelectedBy{Type: typ, Selector: text}
	entry := x.sets[obj.Name]
	switch {
	case entry == nil:
		entry = &setEntry{name: obj.Name}
		x.sets[obj.Name] = entry
	case entry.uid == obj.UID && entry.selectedBy == by && entry.selector.String() == sel.String() &&
		entry.selector.Empty() == sel.Empty(): // Nothing and Everything are both written "".
		return nil
	default:
		x.removeAnchor(entry)
	}
	entry.uid, entry.created = obj.UID, obj.CreationTimestamp
	entry.selector, entry.selectedBy, entry.anchor = sel, by, anchorOf(sel)
	x.addAnchor(entry)

	var changes []Change
	before, after := entry.clusters, x.clustersOf(entry)
	entry.clusters = slices.Clone(after)
	for len(before) > 0 || len(after) > 0 {
		switch {
		case len(after) == 0 || (len(before) > 0 && before[0].name < after[0].name):
			before[0].removeSet(entry)
			changes = append(changes, Change{watch.Deleted, newMember(before[0], entry)})
			before = before[1:]
		case len(before) == 0 || after[0].name < before[0].name:
			after[0].addSet(entry)
			changes = append(changes, Change{watch.Added, newMember(after[0], entry)})
			after = after[1:]
		default:
			changes = append(changes, Change{watch.Modified, newMember(after[0], entry)})
			before, after = before[1:], after[1:]
		}
	}
	return changes
}

// DeleteSet removes a set and returns the removed members, ordered by cluster.
func (x *Index) DeleteSet(name string) []Change {
	entry := x.sets[name]
	if entry == nil {
		return nil
	}
	delete(x.sets, name)
	x.removeAnchor(entry)
	changes := make([]Change, 0, len(entry.clusters))
	for _, c := range entry.clusters {
		c.removeSet(entry)
		changes = append(changes, Change{watch.Deleted, newMember(c, entry)})
	}
	return changes
}

// clustersOf returns the clusters that a set selects, ordered by name.
func (x *Index) clustersOf(s *setEntry) []*clusterEntry {
	var found []*clusterEntry
	match := func(c *clusterEntry) {
		if s.selector.Matches(labels.Set(c.labels)) {
			found = append(found, c)
		}
	}
	switch {
	case s.anchor.key == "":
		if _, selectable := s.selector.Requirements(); !selectable {
			return nil
		}
		for _, c := range x.clusters {
			match(c)
		}
	case len(s.anchor.values) > 0:
		for _, v := range s.anchor.values {
			for _, c := range x.clustersByLabel[s.anchor.key][v] {
				match(c)
			}
		}
	default:
		for _, clusters := range x.clustersByLabel[s.anchor.key] {
			for _, c := range clusters {
				match(c)
			}
		}
	}
	slices.SortFunc(found, compareClusters)
	return found
}

func (x *Index) String() string {
	return fmt.Sprintf("%d clusters, %d sets", len(x.clusters), len(x.sets))
}
