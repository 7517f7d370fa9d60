// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package managedcluster

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/membership"
	"github.com/clusterhub/clusterhub/pkg/registry/generic"
	"github.com/clusterhub/clusterhub/pkg/registry/view/derived"
	"github.com/clusterhub/clusterhub/pkg/registry/view/position"
)

// index has the rows of all clusters: one for the name, and one for each set. A change of a cluster is an event of each of its rows, as visibility
// requires.
type index struct {
	members  *membership.Index
	clusters map[string]*cluster.ManagedCluster
	shared   shared
}

func newIndex(cached Cached) *index {
	return &index{members: membership.New(), clusters: map[string]*cluster.ManagedCluster{}, shared: shared{cached: cached}}
}

// Set implements derived.ObjectIndex.
func (x *index) Set(object runtime.Object) []derived.Change {
	switch object := object.(type) {
	case *cluster.ManagedCluster:
		object = x.shared.of(object)
		before, existed := x.members.SetsOf(object.Name), x.clusters[object.Name] != nil
		x.clusters[object.Name] = object
		x.members.SetCluster(object)
		kind := watch.Added
		if existed {
			kind = watch.Modified
		}
		return ended(x.named(kind, object, x.rows(object, before)))
	case *cluster.ManagedClusterSet:
		return x.moved(object.Name, x.members.SetSet(object))
	}
	return nil
}

// Delete implements derived.ObjectIndex.
func (x *index) Delete(object runtime.Object) []derived.Change {
	switch object := object.(type) {
	case *cluster.ManagedCluster:
		was := x.clusters[object.Name]
		if was == nil {
			return nil
		}
		before := x.members.SetsOf(object.Name)
		x.members.DeleteCluster(object.Name)
		delete(x.clusters, object.Name)
		return ended(x.named(watch.Deleted, was, x.rows(was, before)))
	case *cluster.ManagedClusterSet:
		return x.moved(object.Name, x.members.DeleteSet(object.Name))
	}
	return nil
}

// Each implements derived.ObjectIndex.
func (x *index) Each(f func(object generic.Object, clusterName, setName string)) {
	for name, c := range x.clusters {
		f(copyOf(c), name, "")
		all := x.members.SetsOf(name)
		for _, set := range all {
			f(row(c, set, all), name, set)
		}
	}
}

// moved returns the rows of the clusters that a change of a set has moved, in the order of their names.
func (x *index) moved(set string, members []membership.Change) []derived.Change {
	var changes []derived.Change
	for _, change := range members {
		before := x.members.SetsOf(change.Member.Spec.Cluster)
		switch change.Type {
		case watch.Added:
			before = slices.DeleteFunc(before, func(other string) bool { return other == set })
		case watch.Deleted:
			before = append(before, set)
			slices.Sort(before)
		default:
			continue
		}
		changes = append(changes, x.rows(x.clusters[change.Member.Spec.Cluster], before)...)
	}
	return ended(changes)
}

// rows returns the rows of the sets that a cluster was in, or is in now.
func (x *index) rows(c *cluster.ManagedCluster, before []string) []derived.Change {
	after := x.members.SetsOf(c.Name)
	all := slices.Concat(before, after)
	slices.Sort(all)
	var changes []derived.Change
	for _, set := range slices.Compact(all) {
		kind := watch.Modified
		switch {
		case !slices.Contains(before, set):
			kind = watch.Added
		case !slices.Contains(after, set):
			kind = watch.Deleted
		}
		changes = append(changes, derived.Change{Type: kind, Object: row(c, set, after)})
	}
	return changes
}

// named appends the row of the name.
func (x *index) named(kind watch.EventType, c *cluster.ManagedCluster, rows []derived.Change) []derived.Change {
	return append(rows, derived.Change{Type: kind, Object: copyOf(c)})
}

// ended appends the end of a change.
func ended(changes []derived.Change) []derived.Change {
	if len(changes) == 0 {
		return nil
	}
	return append(changes, derived.Change{Type: watch.Modified, Object: resource.NewEnd()})
}

func row(c *cluster.ManagedCluster, set string, all []string) *cluster.ManagedCluster {
	r := copyOf(c)
	position.SetRow(r, set, all)
	return r
}

// copyOf returns a copy of a cluster that may get another version. It shares everything else.
func copyOf(c *cluster.ManagedCluster) *cluster.ManagedCluster {
	shared := *c
	return &shared
}
