// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package openmcp

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Cluster is a Kubernetes cluster that a cluster provider creates and maintains according to its ClusterProfile. To get a cluster, create a
// ClusterRequest; to get access to one, create an AccessRequest.
type Cluster struct {
	metav1.TypeMeta
	// metadata is the standard object metadata. The provider sets the labels clusters.openmcp.cloud/provider and clusters.openmcp.cloud/k8sversion,
	// and can set the annotation clusters.openmcp.cloud/providerinfo to further information.
	metav1.ObjectMeta

	// spec defines the desired state of the cluster.
	Spec ClusterSpec
	// status represents the observed state of the cluster.
	Status ClusterStatus
}

// Tenancy defines how many ClusterRequests can use a cluster.
type Tenancy string

const (
	// TENANCY_EXCLUSIVE means that one ClusterRequest uses the cluster exclusively.
	TENANCY_EXCLUSIVE Tenancy = "Exclusive"
	// TENANCY_SHARED means that several ClusterRequests can use the cluster.
	TENANCY_SHARED Tenancy = "Shared"
)

// ClusterSpec defines the desired state of a Cluster.
type ClusterSpec struct {
	// profile is the name of the ClusterProfile of the cluster, 1 to 253 characters. The ClusterProfile must exist. Immutable.
	Profile string
	// clusterConfigs reference configurations of the provider for this cluster, in the namespace of the Cluster: at most 64.
	ClusterConfigs []LocalObjectReference
	// kubernetes defines the desired Kubernetes configuration.
	Kubernetes K8sConfiguration
	// purposes are the purposes of the cluster, such as platform, workload, onboarding or mcp: 1 to 128 of at most 253 characters each if the
	// field is set.
	Purposes []string
	// tenancy defines how many ClusterRequests can use the cluster: Exclusive for one, Shared for several.
	Tenancy Tenancy
}

// K8sConfiguration defines the desired Kubernetes configuration of a cluster.
type K8sConfiguration struct {
	// version is the desired Kubernetes version, such as 1.33.3, at most 253 characters. It must be one of spec.supportedVersions of the
	// ClusterProfile, unless that list is empty. If it is not set, the provider chooses a version. The label clusters.openmcp.cloud/k8sversion has
	// the actual version.
	Version string
}

// ClusterStatus represents the observed state of a Cluster.
type ClusterStatus struct {
	// Status contains the fields that the status of all kinds has.
	Status
	// apiServer is the URL of the cluster's API server, at most 2048 characters. Deprecated: use endpoints.
	APIServer string
	// endpoints are the addresses of the cluster, such as apiserver-external and apiserver-internal: at most 64.
	Endpoints Endpoints
	// providerStatus is an object with fields of the provider's choice, at most 128 KiB. Only the provider reads it.
	ProviderStatus *runtime.RawExtension
}

// Endpoints are the addresses of a cluster.
type Endpoints []Endpoint

// Endpoint is an address of a cluster.
type Endpoint struct {
	// name is the name of the endpoint, such as apiserver-external, 1 to 253 characters.
	Name string
	// url is the URL of the endpoint, such as https://api.example.com:6443, at most 2048 characters.
	URL string
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterList is a list of Clusters.
type ClusterList struct {
	metav1.TypeMeta
	// metadata is the standard list metadata.
	metav1.ListMeta
	// items are the Clusters.
	Items []Cluster
}
