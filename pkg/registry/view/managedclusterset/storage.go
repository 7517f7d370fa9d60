// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package managedclusterset is the registry of the managedclustersets of clusterview.open-cluster-management.io: the stored ones that a user may get.
// It is derived from the fleet, although nothing is computed, so that changes of the RBAC rules are ordered among those of the sets.
package managedclusterset

import (
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/clusterview"
	stored "github.com/clusterhub/clusterhub/pkg/registry/cluster/managedclusterset"
	"github.com/clusterhub/clusterhub/pkg/registry/generic"
	"github.com/clusterhub/clusterhub/pkg/registry/view/derived"
	"github.com/clusterhub/clusterhub/pkg/registry/view/filtered"
	"github.com/clusterhub/clusterhub/pkg/registry/view/position"
	"github.com/clusterhub/clusterhub/pkg/registry/view/visibility"
)

var resource = position.Resource{
	GroupResource: clusterview.Resource(stored.Kind.Resource.Resource),
	New:           func() generic.Object { return stored.Kind.New() },
	NewList:       stored.Kind.NewList,
	// A set is its own and only object.
	Split:  func(name string) (within, set string, ok bool) { return name, name, position.Possible(name) },
	Fields: func(object generic.Object) fields.Set { return stored.Kind.Fields(object.(*cluster.ManagedClusterSet)) },
}

// New returns the registry. The codec is for the cacher's checks.
func New(config filtered.Config, codec runtime.Codec) *filtered.REST {
	kind := derived.Definition{
		Resource:   resource,
		Codec:      codec,
		FleetCodec: derived.WithoutClusters,
		Digest:     derived.DigestOfSets,
		NewIndex:   func() derived.ObjectIndex { return index{} },
	}
	sets := derived.NewLazy(func() (*derived.Cache, error) {
		return derived.New(kind, config.Fleet, config.Connect, config.Rules.OfSets())
	})
	return filtered.New(sets, visibility.Reader{
		Resource: resource, Shown: "the set", Rules: config.Rules, Authorizer: config.Authorizer,
	}, stored.Kind.Table, filtered.Names{Singular: stored.Kind.Singular})
}

// index has the sets by their names.
type index map[string]*cluster.ManagedClusterSet

// Set implements derived.ObjectIndex.
func (x index) Set(object runtime.Object) []derived.Change {
	set, ok := object.(*cluster.ManagedClusterSet)
	if !ok {
		return nil
	}
	kind := watch.Modified
	if _, exists := x[set.Name]; !exists {
		kind = watch.Added
	}
	x[set.Name] = set
	return []derived.Change{{Type: kind, Object: copyOf(set)}}
}

// Delete implements derived.ObjectIndex.
func (x index) Delete(object runtime.Object) []derived.Change {
	set, ok := object.(*cluster.ManagedClusterSet)
	if !ok || x[set.Name] == nil {
		return nil
	}
	delete(x, set.Name)
	return []derived.Change{{Type: watch.Deleted, Object: copyOf(set)}}
}

// Each implements derived.ObjectIndex.
func (x index) Each(f func(object generic.Object, clusterName, setName string)) {
	for name, set := range x {
		f(copyOf(set), "", name)
	}
}

// copyOf returns a copy of a set that may get another version. It shares everything else.
func copyOf(set *cluster.ManagedClusterSet) *cluster.ManagedClusterSet {
	shared := *set
	return &shared
}
