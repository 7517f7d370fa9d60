// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterProfile is a kind of cluster that a cluster provider offers: which provider makes it, with which of its
// configurations, and in which versions of Kubernetes. Providers publish their profiles, Clusters name them.
type ClusterProfile struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The name is what Clusters have in spec.profile, and becomes a label of
	// AccessRequests: 63 characters at most.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is offered, and by whom.
	// +optional
	Spec ClusterProfileSpec `json:"spec"`
}

// ClusterProfileSpec is what a provider offers.
type ClusterProfileSpec struct {
	// providerRef names the cluster provider that made the profile, and that makes the clusters of it. It is a label of
	// these clusters.
	// +k8s:validation:properties:name:minLength=1
	// +k8s:validation:properties:name:maxLength=63
	// +k8s:validation:properties:name:pattern="^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"
	ProviderRef LocalObjectReference `json:"providerRef"`
	// providerConfigRef names the provider's configuration that the profile is made from. What it refers to is up to the
	// provider; it has to be a valid label value.
	// +k8s:validation:properties:name:minLength=1
	// +k8s:validation:properties:name:maxLength=63
	// +k8s:validation:properties:name:pattern="^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"
	ProviderConfigRef LocalObjectReference `json:"providerConfigRef"`
	// supportedVersions are the versions of Kubernetes that a Cluster can ask for. Empty: the provider does not say, so a
	// Cluster can ask for any.
	// +listType=atomic
	// +k8s:validation:maxItems=512
	SupportedVersions []SupportedK8sVersion `json:"supportedVersions"`
}

// SupportedK8sVersion is a version of Kubernetes that a provider offers.
type SupportedK8sVersion struct {
	// version of Kubernetes, such as 1.33.3, at least 5 characters.
	// +k8s:validation:minLength=5
	// +k8s:validation:maxLength=253
	Version string `json:"version"`
	// deprecated says that the version will not be offered for long. A Cluster that asks for it is answered with a warning.
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
