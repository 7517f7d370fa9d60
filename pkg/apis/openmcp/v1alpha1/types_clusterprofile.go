// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterProfile describes clusters that a cluster provider offers: the provider, its configuration, and the available Kubernetes versions. Providers
// write ClusterProfiles; Clusters reference them.
type ClusterProfile struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. Clusters reference the profile by its name in spec.profile. The name should have at most 63
	// characters, since it becomes the value of a label of AccessRequests.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the offer and its provider.
	// +optional
	Spec ClusterProfileSpec `json:"spec"`
}

// ClusterProfileSpec defines the offer of a provider.
type ClusterProfileSpec struct {
	// providerRef references the cluster provider that creates the clusters of this profile. The name becomes the value of a label of these Clusters,
	// so it must be a valid label value of 1 to 63 characters. Required.
	// +k8s:validation:properties:name:minLength=1
	// +k8s:validation:properties:name:maxLength=63
	// +k8s:validation:properties:name:pattern="^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"
	ProviderRef LocalObjectReference `json:"providerRef"`
	// providerConfigRef references the configuration of the provider that the profile is derived from; the provider defines what that is. The name
	// must be a valid label value of 1 to 63 characters. Required.
	// +k8s:validation:properties:name:minLength=1
	// +k8s:validation:properties:name:maxLength=63
	// +k8s:validation:properties:name:pattern="^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"
	ProviderConfigRef LocalObjectReference `json:"providerConfigRef"`
	// supportedVersions are the Kubernetes versions that a Cluster can request, at most 512. If the list is empty, a Cluster can request any version.
	// Required.
	// +listType=atomic
	// +k8s:validation:maxItems=512
	SupportedVersions []SupportedK8sVersion `json:"supportedVersions"`
}

// SupportedK8sVersion is a Kubernetes version that a provider offers.
type SupportedK8sVersion struct {
	// version is the Kubernetes version, such as 1.33.3, 5 to 253 characters. Required.
	// +k8s:validation:minLength=5
	// +k8s:validation:maxLength=253
	Version string `json:"version"`
	// deprecated is true if the provider will soon stop offering the version. The server returns a warning for a Cluster that requests it. The
	// default is false.
	// +optional
	Deprecated bool `json:"deprecated,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterProfileList is a list of ClusterProfiles.
type ClusterProfileList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the ClusterProfiles.
	Items []ClusterProfile `json:"items"`
}
