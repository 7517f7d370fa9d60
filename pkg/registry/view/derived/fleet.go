// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package derived computes derived resources: a storage computes their objects from the clusters and sets in etcd (storage.go, translate.go), below
// the cacher of k8s.io/apiserver (cache.go). It has no notion of users.
package derived

import (
	"path"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/registry/view/position"
)

// Fleet returns the configuration to read everything under position.FleetPrefix. The codec decodes all of it, and encodes visibility revisions.
func Fleet(options generic.RESTOptionsGetter, codec runtime.Codec) (*storagebackend.ConfigForResource, error) {
	clusters, err := options.GetRESTOptions(cluster.Resource("managedclusters"), &cluster.ManagedCluster{})
	if err != nil {
		return nil, err
	}
	sets, err := options.GetRESTOptions(cluster.Resource("managedclustersets"), &cluster.ManagedClusterSet{})
	if err != nil {
		return nil, err
	}
	fleet := *clusters.StorageConfig
	fleet.Transformer = fleetTransformer{
		clusters: fleet.Transformer, sets: sets.StorageConfig.Transformer,
		setPrefix: path.Join("/", fleet.Prefix, position.FleetPrefix, "managedclustersets") + "/",
	}
	fleet.Codec = codec
	return &fleet, nil
}
