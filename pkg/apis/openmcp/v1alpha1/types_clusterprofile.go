// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterProfile is a kind of cluster that a cluster provider offers: by which provider, with which of its
// configurations, and in which versions of Kubernetes. Providers write ClusterProfiles; Clusters name them.
type ClusterProfile struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. Clusters refer to it by its name, in spec.profile. The name becomes the value of a label of
	// AccessRequests, so it should have at most 63 characters.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the offer, and the provider that makes it.
	// +optional
	Spec ClusterProfileSpec `json:"spec"`
}

// ClusterProfileSpec is the offer of a provider.
type ClusterProfileSpec struct {
	// providerRef names the cluster provider that makes the clusters of this profile. It becomes the value of a label of
	// these Clusters, so it has to be a valid label value, 1 to 63 characters.
	// +k8s:validation:properties:name:minLength=1
	// +k8s:validation:properties:name:maxLength=63
	// +k8s:validation:properties:name:pattern="^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"
	ProviderRef LocalObjectReference `json:"providerRef"`
	// providerConfigRef names the configuration of the provider that the profile is made from; the provider decides what
	// that is. It has to be a valid label value, 1 to 63 characters.
	// +k8s:validation:properties:name:minLength=1
	// +k8s:validation:properties:name:maxLength=63
	// +k8s:validation:properties:name:pattern="^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"
	ProviderConfigRef LocalObjectReference `json:"providerConfigRef"`
	// supportedVersions are the versions of Kubernetes that a Cluster can ask for, at most 512. If the list is empty, a
	// Cluster can ask for any version.
	// +listType=atomic
	// +k8s:validation:maxItems=512
	SupportedVersions []SupportedK8sVersion `json:"supportedVersions"`
}

// SupportedK8sVersion is a version of Kubernetes that a provider offers.
type SupportedK8sVersion struct {
	// version is a version of Kubernetes, such as 1.33.3, 5 to 253 characters.
	// +k8s:validation:minLength=5
	// +k8s:validation:maxLength=253
	Version string `json:"version"`
	// deprecated is true when the provider will soon stop offering the version. A Cluster that asks for it gets a
	// warning. The default is false.
	// +optional
	Deprecated bool `json:"deprecated,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterProfileList is a list of ClusterProfile.
type ClusterProfileList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the profiles.
	Items []ClusterProfile `json:"items"`
}
