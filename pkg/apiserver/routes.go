// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"maps"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/clusterview"
	clusterviewv1 "github.com/clusterhub/clusterhub/pkg/apis/clusterview/v1"
	clusterviewv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/clusterview/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
	"github.com/clusterhub/clusterhub/pkg/apis/view"
	"github.com/clusterhub/clusterhub/pkg/apis/view/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
	"github.com/clusterhub/clusterhub/pkg/apiserver/moves"
	"github.com/clusterhub/clusterhub/pkg/registry/cluster/addonplacementscore"
	"github.com/clusterhub/clusterhub/pkg/registry/cluster/clusterclaim"
	"github.com/clusterhub/clusterhub/pkg/registry/cluster/managedcluster"
	"github.com/clusterhub/clusterhub/pkg/registry/cluster/managedclusterset"
	"github.com/clusterhub/clusterhub/pkg/registry/cluster/managedclustersetbinding"
	"github.com/clusterhub/clusterhub/pkg/registry/cluster/placement"
	"github.com/clusterhub/clusterhub/pkg/registry/cluster/placementdecision"
	"github.com/clusterhub/clusterhub/pkg/registry/edge/deploycheck"
	"github.com/clusterhub/clusterhub/pkg/registry/edge/deploymentpattern"
	"github.com/clusterhub/clusterhub/pkg/registry/edge/deploymentpolicy"
	"github.com/clusterhub/clusterhub/pkg/registry/edge/edgenode"
	"github.com/clusterhub/clusterhub/pkg/registry/edge/edgeplacement"
	"github.com/clusterhub/clusterhub/pkg/registry/edge/edgeservice"
	hubgeneric "github.com/clusterhub/clusterhub/pkg/registry/generic"
	"github.com/clusterhub/clusterhub/pkg/registry/openmcp/accessrequest"
	openmcpcluster "github.com/clusterhub/clusterhub/pkg/registry/openmcp/cluster"
	"github.com/clusterhub/clusterhub/pkg/registry/openmcp/clusterprofile"
	"github.com/clusterhub/clusterhub/pkg/registry/openmcp/clusterrequest"
	"github.com/clusterhub/clusterhub/pkg/registry/view/clustersetmember"
	"github.com/clusterhub/clusterhub/pkg/registry/view/filtered"
	visiblecluster "github.com/clusterhub/clusterhub/pkg/registry/view/managedcluster"
	"github.com/clusterhub/clusterhub/pkg/registry/view/placementexplanation"
	"github.com/clusterhub/clusterhub/pkg/registry/view/visibility"
	"github.com/clusterhub/clusterhub/pkg/registry/work/appliedmanifestwork"
	"github.com/clusterhub/clusterhub/pkg/registry/work/manifestwork"
	"github.com/clusterhub/clusterhub/pkg/registry/work/manifestworkreplicaset"
	"github.com/clusterhub/clusterhub/pkg/registry/work/revision"
)

// kinds are the kinds that are stored in etcd.
var kinds = []hubgeneric.Definition{
	managedcluster.Kind,
	managedclusterset.Kind,
	managedclustersetbinding.Kind,
	placement.Kind,
	placementdecision.Kind,
	addonplacementscore.Kind,
	clusterclaim.Kind,

	manifestwork.Kind,
	appliedmanifestwork.Kind,
	manifestworkreplicaset.Kind,
	revision.Kind,

	clusterprofile.Kind,
	openmcpcluster.Kind,
	clusterrequest.Kind,
	accessrequest.Kind,

	edgenode.Kind,
	edgeservice.Kind,
	deploymentpolicy.Kind,
	deploymentpattern.Kind,
	edgeplacement.Kind,
}

// Groups returns the API groups that hub-apiserver serves.
func Groups() []string {
	return []string{cluster.GroupName, clusterview.GroupName, view.GroupName, openmcp.GroupName, work.GroupName, edge.GroupName}
}

// stores are the registries of all resources, each with one store whatever the number of versions.
type stores struct {
	stored  map[schema.GroupResource]*hubgeneric.Resource
	members *clustersetmember.REST
	// visibleClusters and visibleSets serve the clusters and sets that a user may see.
	visibleClusters *visiblecluster.REST
	visibleSets     *filtered.REST
	// rules determine the visibility of the derived resources.
	rules        *visibility.Rules
	accessTokens *accessrequest.TokenREST
	// explanations explain the choices of placements.
	explanations *placementexplanation.REST
	// deployChecks compute what would be deployed to which nodes.
	deployChecks *deploycheck.REST
	moves        *moves.Reporter
}

// of returns the registry of a kind.
func (s stores) of(kind hubgeneric.Definition) *hubgeneric.Resource {
	return s.stored[kind.GroupResource()]
}

// groups returns the API groups with their storage.
func (s stores) groups() []*genericapiserver.APIGroupInfo {
	groups := map[string]*genericapiserver.APIGroupInfo{}
	add := func(version schema.GroupVersion, routes map[string]rest.Storage) {
		if groups[version.Group] == nil {
			groups[version.Group] = newGroup(version.Group)
		}
		versions := groups[version.Group].VersionedResourcesStorageMap
		if versions[version.Version] == nil {
			versions[version.Version] = map[string]rest.Storage{}
		}
		maps.Copy(versions[version.Version], routes)
	}
	for _, kind := range kinds {
		for _, version := range kind.GroupVersions() {
			add(version, s.of(kind).Routes())
		}
	}
	for _, version := range accessrequest.Kind.GroupVersions() {
		add(version, map[string]rest.Storage{"accessrequests/token": s.accessTokens})
	}
	for _, version := range placement.Kind.GroupVersions() {
		add(version, map[string]rest.Storage{"placements/explain": s.explanations})
	}
	for _, version := range deploymentpolicy.Kind.GroupVersions() {
		add(version, map[string]rest.Storage{"deploychecks": s.deployChecks})
	}
	add(v1alpha1.SchemeGroupVersion, map[string]rest.Storage{"clustersetmembers": s.members})
	add(clusterviewv1.SchemeGroupVersion, map[string]rest.Storage{"managedclusters": s.visibleClusters})
	add(clusterviewv1alpha1.SchemeGroupVersion, map[string]rest.Storage{"managedclustersets": s.visibleSets})

	var infos []*genericapiserver.APIGroupInfo
	for _, name := range Groups() {
		infos = append(infos, groups[name])
	}
	return infos
}

func newGroup(name string) *genericapiserver.APIGroupInfo {
	info := genericapiserver.NewDefaultAPIGroupInfo(name, Scheme, runtime.NewParameterCodec(Scheme), Codecs)
	info.NegotiatedSerializer = negotiated{info.NegotiatedSerializer}
	return &info
}
