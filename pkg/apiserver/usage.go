// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/clusterhub/clusterhub/pkg/admission/cluster/clustersetdeletion"
	"github.com/clusterhub/clusterhub/pkg/admission/cluster/pendingclusters"
	"github.com/clusterhub/clusterhub/pkg/admission/edge/nodeaccess"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/registry/cluster/managedcluster"
	"github.com/clusterhub/clusterhub/pkg/registry/cluster/managedclusterset"
	"github.com/clusterhub/clusterhub/pkg/registry/cluster/managedclustersetbinding"
	"github.com/clusterhub/clusterhub/pkg/registry/cluster/placement"
	"github.com/clusterhub/clusterhub/pkg/registry/edge/edgeservice"
	"github.com/clusterhub/clusterhub/pkg/registry/openmcp/accessrequest"
	"github.com/clusterhub/clusterhub/pkg/registry/openmcp/clusterprofile"
	"github.com/clusterhub/clusterhub/pkg/registry/work/manifestworkreplicaset"
)

// Registries give admission access to the stored objects.
type Registries struct {
	// SetUsage counts the uses of a set.
	SetUsage clustersetdeletion.Counter
	// ManagedClusters are the clusters of the hub.
	ManagedClusters pendingclusters.Clusters
	// ClusterSets returns which sets a cluster is in.
	ClusterSets nodeaccess.Sets
	// SetBindings are the ManagedClusterSetBindings of all namespaces.
	SetBindings rest.Lister
	// Placements are the placements of all namespaces.
	Placements rest.Lister
	// ClusterProfiles are the profiles of clusters.openmcp.cloud.
	ClusterProfiles rest.Getter
	// AccessRequests are the access requests of clusters.openmcp.cloud.
	AccessRequests rest.Lister
	// ReplicaSets are the ManifestWorkReplicaSets.
	ReplicaSets rest.Getter
	// EdgeServices are the services of all namespaces.
	EdgeServices rest.Lister
	// FollowNamespaced counts the objects of all namespaces while the server runs. The server is ready when they are counted.
	FollowNamespaced func(NamespaceCounter)
}

func (s stores) registries() Registries {
	return Registries{
		SetUsage:        usage{s},
		ManagedClusters: s.of(managedcluster.Kind),
		ClusterSets:     s.visibleClusters,
		SetBindings:     s.of(managedclustersetbinding.Kind),
		Placements:      s.of(placement.Kind),
		ClusterProfiles: s.of(clusterprofile.Kind),
		AccessRequests:  s.of(accessrequest.Kind),
		ReplicaSets:     s.of(manifestworkreplicaset.Kind),
		EdgeServices:    s.of(edgeservice.Kind),
	}
}

// usage counts the uses of a set.
type usage struct{ stores }

var _ clustersetdeletion.Counter = usage{}

// Uses implements clustersetdeletion.Counter.
func (u usage) Uses(ctx context.Context, set string) (members, bindings int, err error) {
	members, err = u.members.Count(ctx, set)
	if err != nil {
		return 0, 0, err
	}
	list, err := u.of(managedclustersetbinding.Kind).List(request.WithNamespace(ctx, ""), &internalversion.ListOptions{
		FieldSelector:   fields.OneTermEqualSelector("spec.clusterSet", set),
		ResourceVersion: "0",
	})
	if err != nil {
		return 0, 0, err
	}
	return members, meta.LenList(list), nil
}

// sets returns all sets of the hub from the cache.
func (s stores) sets(ctx context.Context) ([]cluster.ManagedClusterSet, error) {
	list, err := s.of(managedclusterset.Kind).List(ctx, &internalversion.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	return list.(*cluster.ManagedClusterSetList).Items, nil
}
