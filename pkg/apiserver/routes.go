// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	v1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
	openmcpv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/apis/view"
	"github.com/clusterhub/clusterhub/pkg/apis/view/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/registry/cluster/managedcluster"
	"github.com/clusterhub/clusterhub/pkg/registry/cluster/managedclusterset"
	"github.com/clusterhub/clusterhub/pkg/registry/cluster/managedclustersetbinding"
	"github.com/clusterhub/clusterhub/pkg/registry/openmcp/accessrequest"
	openmcpcluster "github.com/clusterhub/clusterhub/pkg/registry/openmcp/cluster"
	"github.com/clusterhub/clusterhub/pkg/registry/openmcp/clusterprofile"
	"github.com/clusterhub/clusterhub/pkg/registry/openmcp/clusterrequest"
	"github.com/clusterhub/clusterhub/pkg/registry/view/clustersetmember"
)

// stores are the registries of all resources, each with one store whatever the number of versions.
type stores struct {
	clusters *managedcluster.Storage
	sets     *managedclusterset.Storage
	bindings *managedclustersetbinding.Storage
	members  *clustersetmember.REST

	profiles        *clusterprofile.Storage
	openmcpClusters *openmcpcluster.Storage
	clusterRequests *clusterrequest.Storage
	accessRequests  *accessrequest.Storage
	accessTokens    *accessrequest.TokenREST
}

// Groups are the API groups that hub-apiserver serves.
func Groups() []string { return []string{cluster.GroupName, view.GroupName, openmcp.GroupName} }

// clusterGroup is the route table of cluster.open-cluster-management.io.
func (s stores) clusterGroup() *genericapiserver.APIGroupInfo {
	group := newGroup(cluster.GroupName)
	group.VersionedResourcesStorageMap[v1.SchemeGroupVersion.Version] = map[string]rest.Storage{
		"managedclusters":        s.clusters.ManagedCluster,
		"managedclusters/status": s.clusters.Status,
		"managedclusters/label":  s.clusters.Label,
		"managedclusters/accept": s.clusters.Accept,
	}
	for _, version := range []string{v1beta1.SchemeGroupVersion.Version, v1beta2.SchemeGroupVersion.Version} {
		group.VersionedResourcesStorageMap[version] = map[string]rest.Storage{
			"managedclustersets":               s.sets.ManagedClusterSet,
			"managedclustersets/status":        s.sets.Status,
			"managedclustersetbindings":        s.bindings.ManagedClusterSetBinding,
			"managedclustersetbindings/status": s.bindings.Status,
		}
	}
	return group
}

// viewGroup is the route table of view.clusterhub.dev.
func (s stores) viewGroup() *genericapiserver.APIGroupInfo {
	group := newGroup(view.GroupName)
	group.VersionedResourcesStorageMap[v1alpha1.SchemeGroupVersion.Version] = map[string]rest.Storage{
		"clustersetmembers": s.members,
	}
	return group
}

// openmcpGroup is the route table of clusters.openmcp.cloud.
func (s stores) openmcpGroup() *genericapiserver.APIGroupInfo {
	group := newGroup(openmcp.GroupName)
	group.VersionedResourcesStorageMap[openmcpv1alpha1.SchemeGroupVersion.Version] = map[string]rest.Storage{
		"clusterprofiles":        s.profiles.ClusterProfile,
		"clusters":               s.openmcpClusters.Cluster,
		"clusters/status":        s.openmcpClusters.Status,
		"clusterrequests":        s.clusterRequests.ClusterRequest,
		"clusterrequests/status": s.clusterRequests.Status,
		"accessrequests":         s.accessRequests.AccessRequest,
		"accessrequests/status":  s.accessRequests.Status,
		"accessrequests/token":   s.accessTokens,
	}
	return group
}

func newGroup(name string) *genericapiserver.APIGroupInfo {
	info := genericapiserver.NewDefaultAPIGroupInfo(name, Scheme, runtime.NewParameterCodec(Scheme), Codecs)
	info.NegotiatedSerializer = negotiated{info.NegotiatedSerializer}
	return &info
}
