// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterview contains the internal version of the API group of stolostron's clusterview: the ManagedClusters and ManagedClusterSets that a
// user may see. It has no types of its own, but registers those of cluster.open-cluster-management.io, as consoles expect.
package clusterview

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

// GroupName is the API group of this package.
const GroupName = "clusterview.open-cluster-management.io"

// SchemeGroupVersion is the internal version of the group.
var SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: runtime.APIVersionInternal}

var (
	// SchemeBuilder collects the functions that add the internal kinds to a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	// AddToScheme adds the internal kinds to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

// Resource qualifies a resource name with this API group.
func Resource(resource string) schema.GroupResource {
	return SchemeGroupVersion.WithResource(resource).GroupResource()
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion,
		&cluster.ManagedCluster{},
		&cluster.ManagedClusterList{},
		&cluster.ManagedClusterSet{},
		&cluster.ManagedClusterSetList{},
	)
	return nil
}
