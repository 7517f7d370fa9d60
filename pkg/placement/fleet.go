// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/selector"
	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterv1beta2 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	"github.com/clusterhub/clusterhub/pkg/membership"
)

// Clusters is the interface to clusters and sets that a placement uses. Fleet implements it.
type Clusters interface {
	// Cluster returns the cluster of a name, or nil.
	Cluster(name string) *ClusterInfo
	// Members returns the clusters of a set, ordered by name; the list must not be changed or stored. exists reports whether the set exists. It
	// returns an error for a set whose members cannot be determined.
	Members(set string) (members []*ClusterInfo, exists bool, err error)
}

// Fleet has the clusters and sets of a hub. The members of sets come from the membership index. It is not safe for concurrent use.
type Fleet struct {
	index    *membership.Index
	clusters map[string]*ClusterInfo
	sets     map[string]*fleetSet
}

type fleetSet struct {
	// members are ordered by name.
	members []*ClusterInfo
	err     error
}

var _ Clusters = &Fleet{}

// NewFleet returns an empty Fleet.
func NewFleet() *Fleet {
	return &Fleet{index: membership.New(), clusters: map[string]*ClusterInfo{}, sets: map[string]*fleetSet{}}
}

// Cluster implements Clusters.
func (f *Fleet) Cluster(name string) *ClusterInfo { return f.clusters[name] }

// Members implements Clusters.
func (f *Fleet) Members(set string) ([]*ClusterInfo, bool, error) {
	s := f.sets[set]
	if s == nil {
		return nil, false, nil
	}
	return s.members, true, s.err
}

// SetsOf returns the names of the sets that a cluster is in, in order.
func (f *Fleet) SetsOf(cluster string) []string { return f.index.SetsOf(cluster) }

// SetCluster adds or replaces a cluster. It returns the previous cluster (nil for a new one) and the current one, and the sets that it was added to
// or removed from.
func (f *Fleet) SetCluster(obj *clusterv1.ManagedCluster) (before, after *ClusterInfo, moved []string) {
	before, after = f.clusters[obj.Name], NewCluster(obj)
	f.clusters[obj.Name] = after
	for _, change := range f.index.SetCluster(&cluster.ManagedCluster{
		// Membership depends on nothing else.
		ObjectMeta: metav1.ObjectMeta{Name: obj.Name, UID: obj.UID, Labels: obj.Labels},
	}) {
		if change.Type != watch.Modified {
			moved = append(moved, change.Member.Spec.ClusterSet)
		}
		f.apply(change)
	}
	for _, name := range f.index.SetsOf(obj.Name) {
		members := f.sets[name].members
		if i, found := slices.BinarySearchFunc(members, obj.Name, compareName); found {
			members[i] = after
		}
	}
	return before, after, moved
}

// DeleteCluster removes a cluster. It returns the sets that it was in.
func (f *Fleet) DeleteCluster(name string) (left []string) {
	for _, change := range f.index.DeleteCluster(name) {
		left = append(left, change.Member.Spec.ClusterSet)
		f.apply(change)
	}
	delete(f.clusters, name)
	return left
}

// SetSet adds or replaces a set, with the selector types of v1beta1 as those of v1beta2. It reports whether anything has changed for placements:
// its members, or whether they are known.
func (f *Fleet) SetSet(obj *clusterv1beta2.ManagedClusterSet) (changed bool) {
	internal := &cluster.ManagedClusterSet{}
	err := clusterv1beta2.Convert_v1beta2_ManagedClusterSet_To_cluster_ManagedClusterSet(obj, internal, nil)
	if err == nil {
		_, err = selector.For(internal)
	}
	if err != nil {
		// The index selects nothing for it.
		internal = &cluster.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: obj.Name, UID: obj.UID}}
		internal.Spec.ClusterSelector.SelectorType = "Unknown"
		err = fmt.Errorf("the members of the ManagedClusterSet %s are not known: %w", obj.Name, err)
	}
	s := f.sets[obj.Name]
	if s == nil {
		s = &fleetSet{}
		f.sets[obj.Name], changed = s, true
	}
	changed = changed || (s.err == nil) != (err == nil)
	s.err = err
	for _, change := range f.index.SetSet(internal) {
		changed = changed || change.Type != watch.Modified
		f.apply(change)
	}
	return changed
}

// DeleteSet removes a set.
func (f *Fleet) DeleteSet(name string) {
	f.index.DeleteSet(name)
	delete(f.sets, name)
}

// apply applies a change of the index.
func (f *Fleet) apply(change membership.Change) {
	s, name := f.sets[change.Member.Spec.ClusterSet], change.Member.Spec.Cluster
	i, found := slices.BinarySearchFunc(s.members, name, compareName)
	switch {
	case change.Type == watch.Added && !found:
		s.members = slices.Insert(s.members, i, f.clusters[name])
	case change.Type == watch.Deleted && found:
		s.members = slices.Delete(s.members, i, i+1)
	}
}

func compareName(c *ClusterInfo, name string) int { return strings.Compare(c.Object.Name, name) }
