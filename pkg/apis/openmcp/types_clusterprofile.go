// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package openmcp

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterProfile describes clusters that a cluster provider offers: the provider, its configuration, and the available Kubernetes versions. Providers
// write ClusterProfiles; Clusters reference them.
type ClusterProfile struct {
	metav1.TypeMeta
	// metadata is the standard object metadata. Clusters reference the profile by its name in spec.profile. The name should have at most 63
	// characters, since it becomes the value of a label of AccessRequests.
	metav1.ObjectMeta

	// spec defines the offer and its provider.
	Spec ClusterProfileSpec
}

// ClusterProfileSpec defines the offer of a provider.
type ClusterProfileSpec struct {
	// providerRef references the cluster provider that creates the clusters of this profile.
	ProviderRef LocalObjectReference
	// providerConfigRef references the configuration of the provider that the profile is derived from; the provider defines what that is.
	ProviderConfigRef LocalObjectReference
	// supportedVersions are the Kubernetes versions that a Cluster can request, at most 512. If the list is empty, a Cluster can request any version.
	SupportedVersions []SupportedK8sVersion
}

// SupportedK8sVersion is a Kubernetes version that a provider offers.
type SupportedK8sVersion struct {
	// version is the Kubernetes version, such as 1.33.3, 5 to 253 characters.
	Version string
	// deprecated is true if the provider will soon stop offering the version. The server returns a warning for a Cluster that requests it.
	Deprecated bool
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterProfileList is a list of ClusterProfiles.
type ClusterProfileList struct {
	metav1.TypeMeta
	// metadata is the standard list metadata.
	metav1.ListMeta
	// items are the ClusterProfiles.
	Items []ClusterProfile
}
