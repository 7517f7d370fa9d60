// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

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

// Clusters is the interface to clusters and sets that a placement uses. Index implements it.
type Clusters interface {
	// Cluster returns the cluster of a name, or nil.
	Cluster(name string) *ClusterInfo
	// Members returns the clusters of a set, ordered by name; the list must not be changed or stored. exists reports whether the set exists. It
	// returns an error for a set whose members cannot be determined.
	Members(set string) (members []*ClusterInfo, exists bool, err error)
}

// Index has the clusters and sets of a hub. The members of sets come from the membership index. It is not safe for concurrent use.
type Index struct {
	index    *membership.Index
	clusters map[string]*ClusterInfo
	sets     map[string]*memberSet
}

type memberSet struct {
	// members are ordered by name.
	members []*ClusterInfo
	err     error
}

var _ Clusters = &Index{}

// New returns an empty Index.
func New() *Index {
	return &Index{index: membership.New(), clusters: map[string]*ClusterInfo{}, sets: map[string]*memberSet{}}
}

// Cluster implements Clusters.
func (x *Index) Cluster(name string) *ClusterInfo { return x.clusters[name] }

// Members implements Clusters.
func (x *Index) Members(set string) ([]*ClusterInfo, bool, error) {
	s := x.sets[set]
	if s == nil {
		return nil, false, nil
	}
	return s.members, true, s.err
}

// SetsOf returns the names of the sets that a cluster is in, in order.
func (x *Index) SetsOf(cluster string) []string { return x.index.SetsOf(cluster) }

// SetCluster adds or replaces a cluster. It returns the previous cluster (nil for a new one) and the current one, and the sets that it was added to
// or removed from.
func (x *Index) SetCluster(obj *clusterv1.ManagedCluster) (before, after *ClusterInfo, moved []string) {
	before, after = x.clusters[obj.Name], NewCluster(obj)
	x.clusters[obj.Name] = after
	for _, change := range x.index.SetCluster(&cluster.ManagedCluster{
		// Membership depends on nothing else.
		ObjectMeta: metav1.ObjectMeta{Name: obj.Name, UID: obj.UID, Labels: obj.Labels},
	}) {
		if change.Type != watch.Modified {
			moved = append(moved, change.Member.Spec.ClusterSet)
		}
		x.apply(change)
	}
	for _, name := range x.index.SetsOf(obj.Name) {
		members := x.sets[name].members
		if i, found := slices.BinarySearchFunc(members, obj.Name, CompareName); found {
			members[i] = after
		}
	}
	return before, after, moved
}

// DeleteCluster removes a cluster. It returns the sets that it was in.
func (x *Index) DeleteCluster(name string) (left []string) {
	for _, change := range x.index.DeleteCluster(name) {
		left = append(left, change.Member.Spec.ClusterSet)
		x.apply(change)
	}
	delete(x.clusters, name)
	return left
}

// SetSet adds or replaces a set, with the selector types of v1beta1 as those of v1beta2. It reports whether anything has changed for placements:
// its members, or whether they are known.
func (x *Index) SetSet(obj *clusterv1beta2.ManagedClusterSet) (changed bool) {
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
	s := x.sets[obj.Name]
	if s == nil {
		s = &memberSet{}
		x.sets[obj.Name], changed = s, true
	}
	changed = changed || (s.err == nil) != (err == nil)
	s.err = err
	for _, change := range x.index.SetSet(internal) {
		changed = changed || change.Type != watch.Modified
		x.apply(change)
	}
	return changed
}

// DeleteSet removes a set.
func (x *Index) DeleteSet(name string) {
	x.index.DeleteSet(name)
	delete(x.sets, name)
}

// apply applies a change of the membership index.
func (x *Index) apply(change membership.Change) {
	s, name := x.sets[change.Member.Spec.ClusterSet], change.Member.Spec.Cluster
	i, found := slices.BinarySearchFunc(s.members, name, CompareName)
	switch {
	case change.Type == watch.Added && !found:
		s.members = slices.Insert(s.members, i, x.clusters[name])
	case change.Type == watch.Deleted && found:
		s.members = slices.Delete(s.members, i, i+1)
	}
}

// CompareName compares the name of a cluster with a name, for binary searches of clusters that are sorted by name.
func CompareName(c *ClusterInfo, name string) int { return strings.Compare(c.Object.Name, name) }
