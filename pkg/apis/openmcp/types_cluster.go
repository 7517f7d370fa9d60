// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package openmcp

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Cluster is a Kubernetes cluster that a cluster provider creates and maintains, as its profile specifies. Users request a cluster with a
// ClusterRequest, and access to one with an AccessRequest.
type Cluster struct {
	metav1.TypeMeta
	// metadata is the standard object metadata. The provider sets the labels clusters.openmcp.cloud/provider and
	// clusters.openmcp.cloud/k8sversion, and can say more in the annotation clusters.openmcp.cloud/providerinfo.
	metav1.ObjectMeta

	// spec is the cluster that is wanted.
	Spec ClusterSpec
	// status is the state that the provider observes.
	Status ClusterStatus
}

// Tenancy tells how many may use a cluster.
type Tenancy string

const (
	// TENANCY_EXCLUSIVE means that one ClusterRequest has the cluster for itself.
	TENANCY_EXCLUSIVE Tenancy = "Exclusive"
	// TENANCY_SHARED means that several ClusterRequests can be given the cluster.
	TENANCY_SHARED Tenancy = "Shared"
)

// ClusterSpec is the cluster that is wanted.
type ClusterSpec struct {
	// profile names the ClusterProfile that the cluster is made from, which has to exist. It cannot be changed.
	Profile string
	// clusterConfigs name configurations of the provider for this cluster, in the namespace of the cluster.
	ClusterConfigs []LocalObjectReference
	// kubernetes is the desired configuration of Kubernetes in the cluster.
	Kubernetes K8sConfiguration
	// purposes are the purposes of the cluster: at least one, if the field is set. ClusterRequests ask for a purpose. Usual ones are
	// platform, workload, onboarding and mcp.
	Purposes []string
	// tenancy tells whether the cluster is for one request (Exclusive) or for several (Shared).
	Tenancy Tenancy
}

// K8sConfiguration is the desired configuration of Kubernetes in a cluster.
type K8sConfiguration struct {
	// version of Kubernetes that is wanted, one of spec.supportedVersions of the profile unless these are empty. Without it
	// the provider chooses. The version that the cluster has is in its label clusters.openmcp.cloud/k8sversion.
	Version string
}

// ClusterStatus is the state that the provider of a cluster observes.
type ClusterStatus struct {
	// Status has the fields of the status that all kinds have.
	Status
	// apiServer is the address of the cluster's API server. Deprecated: endpoints has it.
	APIServer string
	// endpoints are the addresses of the cluster, such as apiserver-external and apiserver-internal.
	Endpoints Endpoints
	// providerStatus is an object of the provider's own, in which every field is kept. Only the provider reads it.
	ProviderStatus *runtime.RawExtension
}

// Endpoints are the addresses of a cluster.
type Endpoints []Endpoint

// Endpoint is an address of a cluster.
type Endpoint struct {
	// name of the endpoint, such as apiserver-external.
	Name string
	// url of the endpoint, such as https://api.example.com:6443.
	URL string
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterList is a list of Cluster.
type ClusterList struct {
	metav1.TypeMeta
	// metadata is the standard list metadata.
	metav1.ListMeta
	// items are the clusters.
	Items []Cluster
}
