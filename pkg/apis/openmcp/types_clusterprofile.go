// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package openmcp

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterProfile is a kind of cluster that a cluster provider offers: which provider makes it, with which of its
// configurations, and in which versions of Kubernetes. Providers publish their profiles, Clusters name them.
type ClusterProfile struct {
	metav1.TypeMeta
	// metadata is the standard object metadata. Clusters refer to it by its name, in spec.profile. The name becomes a label of
	// AccessRequests: 63 characters at most.
	metav1.ObjectMeta

	// spec is the offer, and the provider that makes it.
	Spec ClusterProfileSpec
}

// ClusterProfileSpec is the offer of a provider.
type ClusterProfileSpec struct {
	// providerRef names the cluster provider that made the profile, and that makes the clusters of it. It is a label of
	// these clusters.
	ProviderRef LocalObjectReference
	// providerConfigRef names the provider's configuration that the profile is made from. What it refers to is up to the
	// provider; it has to be a valid label value.
	ProviderConfigRef LocalObjectReference
	// supportedVersions are the versions of Kubernetes that a Cluster can ask for. Empty: the provider does not say, so a
	// Cluster can ask for any.
	SupportedVersions []SupportedK8sVersion
}

// SupportedK8sVersion is a version of Kubernetes that a provider offers.
type SupportedK8sVersion struct {
	// version of Kubernetes, such as 1.33.3, at least 5 characters.
	Version string
	// deprecated says that the version will not be offered for long. A Cluster that asks for it is answered with a warning.
	Deprecated bool
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterProfileList is a list of ClusterProfile.
type ClusterProfileList struct {
	metav1.TypeMeta
	// metadata is the standard list metadata.
	metav1.ListMeta
	// items are the profiles.
	Items []ClusterProfile
}
