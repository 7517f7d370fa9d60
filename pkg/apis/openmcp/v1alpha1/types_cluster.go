// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Cluster is a Kubernetes cluster that a cluster provider makes and keeps, as its ClusterProfile says. To get a cluster,
// make a ClusterRequest; to get access to one, make an AccessRequest.
type Cluster struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The provider sets the labels clusters.openmcp.cloud/provider and
	// clusters.openmcp.cloud/k8sversion, and can add information in the annotation clusters.openmcp.cloud/providerinfo.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state. Users or the scheduler write it.
	// +optional
	Spec ClusterSpec `json:"spec"`
	// status is the observed state. The provider writes it.
	// +optional
	Status ClusterStatus `json:"status,omitzero"`
}

// Tenancy says how many ClusterRequests can use a cluster.
// +enum
type Tenancy string

const (
	// TENANCY_EXCLUSIVE means that one ClusterRequest has the cluster for itself.
	TENANCY_EXCLUSIVE Tenancy = "Exclusive"
	// TENANCY_SHARED means that several ClusterRequests can be given the cluster.
	TENANCY_SHARED Tenancy = "Shared"
)

// ClusterSpec is the desired state of a Cluster.
type ClusterSpec struct {
	// profile is the name of the ClusterProfile that the cluster is made from, at most 253 characters. The
	// ClusterProfile has to exist. The field cannot be changed.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=253
	Profile string `json:"profile"`
	// clusterConfigs name configurations of the provider for this cluster, in the namespace of the Cluster: at most 64.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=64
	ClusterConfigs []LocalObjectReference `json:"clusterConfigs,omitempty"`
	// kubernetes is the desired Kubernetes configuration.
	// +optional
	Kubernetes K8sConfiguration `json:"kubernetes,omitzero"`
	// purposes are the purposes of the cluster, such as platform, workload, onboarding or mcp: 1 to 128, or no field at all. The scheduler
	// gives a ClusterRequest only a Cluster with its purpose.
	// +optional
	// +listType=atomic
	// +k8s:validation:minItems=1
	// +k8s:validation:maxItems=128
	Purposes []string `json:"purposes,omitempty"`
	// tenancy says how many ClusterRequests can use the cluster: Exclusive for one, Shared for several. It is required.
	Tenancy Tenancy `json:"tenancy"`
}

// K8sConfiguration is the desired Kubernetes configuration of a cluster.
type K8sConfiguration struct {
	// version is the desired Kubernetes version, such as 1.33.3. It has to be one of spec.supportedVersions of the
	// ClusterProfile, unless that list is empty. Without it, the provider chooses. The actual version is in the label
	// clusters.openmcp.cloud/k8sversion.
	// +optional
	// +k8s:validation:maxLength=253
	Version string `json:"version,omitempty"`
}

// ClusterStatus is the observed state of a Cluster.
type ClusterStatus struct {
	// Status has the fields of the status that all kinds have.
	Status `json:",inline"`
	// apiServer is the URL of the cluster's API server, at most 2048 bytes. Deprecated: use endpoints.
	// +optional
	// +k8s:validation:maxLength=2048
	APIServer string `json:"apiServer,omitempty"`
	// endpoints are the addresses of the cluster, such as apiserver-external and apiserver-internal: at most 64.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=64
	Endpoints Endpoints `json:"endpoints,omitempty"`
	// providerStatus is an object of the provider's own with any fields, at most 128 KiB. Only the provider reads it.
	// +optional
	ProviderStatus *runtime.RawExtension `json:"providerStatus,omitempty"`
}

// Endpoints are the addresses of a cluster.
type Endpoints []Endpoint

// Endpoint is an address of a cluster.
type Endpoint struct {
	// name is the name of the endpoint, such as apiserver-external, 1 to 253 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=253
	Name string `json:"name"`
	// url is the address, such as https://api.example.com:6443, at most 2048 bytes.
	// +k8s:validation:maxLength=2048
	URL string `json:"url"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterList is a list of Cluster.
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the clusters.
	Items []Cluster `json:"items"`
}
