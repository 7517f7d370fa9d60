// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package managedcluster is the registry of the managedclusters of clusterview.open-cluster-management.io: the stored ones that a user may get by
// name, and those in sets on which the user may get managedclustersets/clusters. Writes are applied to the stored ones.
package managedcluster

import (
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/tools/cache"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/clusterview"
	registry "github.com/clusterhub/clusterhub/pkg/registry/cluster/managedcluster"
	"github.com/clusterhub/clusterhub/pkg/registry/generic"
	"github.com/clusterhub/clusterhub/pkg/registry/view/derived"
	"github.com/clusterhub/clusterhub/pkg/registry/view/filtered"
	"github.com/clusterhub/clusterhub/pkg/registry/view/position"
	"github.com/clusterhub/clusterhub/pkg/registry/view/visibility"
)

var resource = position.Resource{
	GroupResource: clusterview.Resource(registry.Kind.Resource.Resource),
	New:           func() generic.Object { return registry.Kind.New() },
	NewList:       registry.Kind.NewList,
	Fields:        func(object generic.Object) fields.Set { return registry.Kind.Fields(object.(*cluster.ManagedCluster)) },
	ByName:        true,
}

// New returns the registry. The codec is for the cacher's checks.
func New(config filtered.Config, codec runtime.Codec, stored Stored) *REST {
	kind := derived.Definition{
		Resource:   resource,
		Codec:      codec,
		FleetCodec: func(all runtime.Codec) runtime.Codec { return all },
		Digest:     derived.DigestOfClusters,
		NewIndex:   func() derived.ObjectIndex { return newIndex(stored.Cached) },
		Indexers: &cache.Indexers{storage.FieldIndex(position.NameField): func(object any) ([]string, error) {
			return []string{object.(*cluster.ManagedCluster).Name}, nil
		}},
	}
	clusters := derived.NewLazy(func() (*derived.Cache, error) {
		return derived.New(kind, config.Fleet, config.Connect, config.Rules.OfClusters())
	})
	return &REST{filtered.New(clusters, visibility.Reader{
		Resource: resource, Rules: config.Rules, Authorizer: config.Authorizer,
	}, registry.Kind.Table, filtered.Names{Singular: registry.Kind.Singular}, position.NameField), stored}
}
