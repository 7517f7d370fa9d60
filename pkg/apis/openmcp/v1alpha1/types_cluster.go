// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Cluster is a Kubernetes cluster that a cluster provider creates and maintains according to its ClusterProfile. To get a cluster, create a
// ClusterRequest; to get access to one, create an AccessRequest.
type Cluster struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The provider sets the labels clusters.openmcp.cloud/provider and clusters.openmcp.cloud/k8sversion,
	// and can set the annotation clusters.openmcp.cloud/providerinfo to further information.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the desired state of the cluster. Users or the scheduler write it.
	// +optional
	Spec ClusterSpec `json:"spec"`
	// status represents the observed state of the cluster. The provider writes it.
	// +optional
	Status ClusterStatus `json:"status,omitzero"`
}

// Tenancy defines how many ClusterRequests can use a cluster.
// +enum
type Tenancy string

const (
	// TENANCY_EXCLUSIVE means that one ClusterRequest uses the cluster exclusively.
	TENANCY_EXCLUSIVE Tenancy = "Exclusive"
	// TENANCY_SHARED means that several ClusterRequests can use the cluster.
	TENANCY_SHARED Tenancy = "Shared"
)

// ClusterSpec defines the desired state of a Cluster.
type ClusterSpec struct {
	// profile is the name of the ClusterProfile of the cluster, 1 to 253 characters. The ClusterProfile must exist. Required. Immutable.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=253
	Profile string `json:"profile"`
	// clusterConfigs reference configurations of the provider for this cluster, in the namespace of the Cluster: at most 64.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=64
	ClusterConfigs []LocalObjectReference `json:"clusterConfigs,omitempty"`
	// kubernetes defines the desired Kubernetes configuration.
	// +optional
	Kubernetes K8sConfiguration `json:"kubernetes,omitzero"`
	// purposes are the purposes of the cluster, such as platform, workload, onboarding or mcp: 1 to 128 of at most 253 characters each if the
	// field is set. The scheduler assigns to a ClusterRequest only a Cluster with its purpose.
	// +optional
	// +listType=atomic
	// +k8s:validation:minItems=1
	// +k8s:validation:maxItems=128
	// +k8s:validation:items:maxLength=253
	Purposes []string `json:"purposes,omitempty"`
	// tenancy defines how many ClusterRequests can use the cluster: Exclusive for one, Shared for several. Required.
	Tenancy Tenancy `json:"tenancy"`
}

// K8sConfiguration defines the desired Kubernetes configuration of a cluster.
type K8sConfiguration struct {
	// version is the desired Kubernetes version, such as 1.33.3, at most 253 characters. It must be one of spec.supportedVersions of the
	// ClusterProfile, unless that list is empty. If it is not set, the provider chooses a version. The label clusters.openmcp.cloud/k8sversion has
	// the actual version.
	// +optional
	// +k8s:validation:maxLength=253
	Version string `json:"version,omitempty"`
}

// ClusterStatus represents the observed state of a Cluster.
type ClusterStatus struct {
	// Status contains the fields that the status of all kinds has.
	Status `json:",inline"`
	// apiServer is the URL of the cluster's API server, at most 2048 characters. Deprecated: use endpoints.
	// +optional
	// +k8s:validation:maxLength=2048
	APIServer string `json:"apiServer,omitempty"`
	// endpoints are the addresses of the cluster, such as apiserver-external and apiserver-internal: at most 64.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=64
	Endpoints Endpoints `json:"endpoints,omitempty"`
	// providerStatus is an object with fields of the provider's choice, at most 128 KiB. Only the provider reads it.
	// +optional
	ProviderStatus *runtime.RawExtension `json:"providerStatus,omitempty"`
}

// Endpoints are the addresses of a cluster.
type Endpoints []Endpoint

// Endpoint is an address of a cluster.
type Endpoint struct {
	// name is the name of the endpoint, such as apiserver-external, 1 to 253 characters. Required.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=253
	Name string `json:"name"`
	// url is the URL of the endpoint, such as https://api.example.com:6443, at most 2048 characters. Required.
	// +k8s:validation:maxLength=2048
	URL string `json:"url"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterList is a list of Clusters.
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the Clusters.
	Items []Cluster `json:"items"`
}
