// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"io"
	"slices"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"

	"github.com/clusterhub/clusterhub/pkg/apis/clusterview"
	"github.com/clusterhub/clusterhub/pkg/registry/cluster/managedcluster"
)

// listed returns the verbs of a resource in discovery. Kubernetes' garbage collector watches all resources that can be listed, watched and deleted,
// and identifies objects by their UIDs. Clusters of clusterview have the UIDs of the stored ones, and are reported as DELETED to a viewer who loses a
// permission: the garbage collector would then consider an existing cluster deleted. So delete is omitted for them.
func listed(resource schema.GroupResource, verbs []string) []string {
	if resource != clusterview.Resource(managedcluster.Kind.Resource.Resource) {
		return verbs
	}
	return slices.DeleteFunc(slices.Clone(verbs), func(verb string) bool { return verb == "delete" })
}

// groupDiscovery applies it to the one document that has all groups.
type groupDiscovery struct{ aggregated.ResourceManager }

// AddGroupVersion implements aggregated.ResourceManager.
func (d groupDiscovery) AddGroupVersion(group string, version apidiscoveryv2.APIVersionDiscovery) {
	version.Resources = slices.Clone(version.Resources)
	for i := range version.Resources {
		r := &version.Resources[i]
		r.Verbs = listed(schema.GroupResource{Group: group, Resource: r.Resource}, r.Verbs)
	}
	d.ResourceManager.AddGroupVersion(group, version)
}

// versionDiscovery applies it to the document of one version, for clients that do not support the other.
type versionDiscovery struct{ runtime.Encoder }

// Encode implements runtime.Encoder.
func (e versionDiscovery) Encode(obj runtime.Object, w io.Writer) error {
	list, ok := obj.(*metav1.APIResourceList)
	if !ok {
		return e.Encoder.Encode(obj, w)
	}
	version, err := schema.ParseGroupVersion(list.GroupVersion)
	if err != nil {
		return err
	}
	filtered := *list
	filtered.APIResources = slices.Clone(list.APIResources)
	for i := range filtered.APIResources {
		r := &filtered.APIResources[i]
		r.Verbs = listed(schema.GroupResource{Group: version.Group, Resource: r.Name}, r.Verbs)
	}
	return e.Encoder.Encode(&filtered, w)
}
