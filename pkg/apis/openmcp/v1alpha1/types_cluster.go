// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Cluster is a Kubernetes cluster that a cluster provider makes and keeps, as its profile says. Who needs a cluster asks for
// one with a ClusterRequest, who needs to get into one with an AccessRequest.
type Cluster struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The provider sets the labels clusters.openmcp.cloud/provider and
	// clusters.openmcp.cloud/k8sversion, and can say more in the annotation clusters.openmcp.cloud/providerinfo.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the cluster that is wanted.
	// +optional
	Spec ClusterSpec `json:"spec"`
	// status is what the provider observes.
	// +optional
	Status ClusterStatus `json:"status,omitzero"`
}

// Tenancy tells how many may use a cluster.
// +enum
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
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=253
	Profile string `json:"profile"`
	// clusterConfigs name configurations of the provider for this cluster, in the namespace of the cluster.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=64
	ClusterConfigs []LocalObjectReference `json:"clusterConfigs,omitempty"`
	// kubernetes is how Kubernetes is to be in the cluster.
	// +optional
	Kubernetes K8sConfiguration `json:"kubernetes,omitzero"`
	// purposes are what the cluster is there for: at least one, if the field is given. The scheduler gives ClusterRequests
	// clusters that have their purpose. Usual ones are platform, workload, onboarding and mcp.
	// +optional
	// +listType=atomic
	// +k8s:validation:minItems=1
	// +k8s:validation:maxItems=128
	Purposes []string `json:"purposes,omitempty"`
	// tenancy tells whether the cluster is for one request (Exclusive) or for several (Shared).
	Tenancy Tenancy `json:"tenancy"`
}

// K8sConfiguration is how Kubernetes is to be in a cluster.
type K8sConfiguration struct {
	// version of Kubernetes that is wanted, one of spec.supportedVersions of the profile unless these are empty. Without it
	// the provider chooses. The version that the cluster has is in its label clusters.openmcp.cloud/k8sversion.
	// +optional
	// +k8s:validation:maxLength=253
	Version string `json:"version,omitempty"`
}

// ClusterStatus is what the provider of a cluster observes.
type ClusterStatus struct {
	// Status is what the status of every kind begins with.
	Status `json:",inline"`
	// apiServer is the address of the cluster's API server. Deprecated: endpoints has it.
	// +optional
	// +k8s:validation:maxLength=2048
	APIServer string `json:"apiServer,omitempty"`
	// endpoints are the addresses of the cluster, such as apiserver-external and apiserver-internal.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=64
	Endpoints Endpoints `json:"endpoints,omitempty"`
	// providerStatus is an object of the provider's own, in which every field is kept. Nobody else reads it.
	// +optional
	ProviderStatus *runtime.RawExtension `json:"providerStatus,omitempty"`
}

// Endpoints are the addresses of a cluster.
type Endpoints []Endpoint

// Endpoint is an address of a cluster.
type Endpoint struct {
	// name of the endpoint, such as apiserver-external.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=253
	Name string `json:"name"`
	// url of the endpoint, such as https://api.example.com:6443.
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
