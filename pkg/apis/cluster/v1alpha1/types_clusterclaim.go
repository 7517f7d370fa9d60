// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterClaim is a fact that a cluster states about itself, such as its region or product. The agent copies the claims of its cluster to
// status.clusterClaims of the ManagedCluster. On a hub, ClusterClaims describe the hub's own cluster, and are used only if that cluster is managed as
// well.
type ClusterClaim struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The name is the name of the claim, such as id.k8s.io.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the fact. The program that determines it writes it.
	// +optional
	Spec ClusterClaimSpec `json:"spec,omitempty"`
}

// ClusterClaimSpec contains the value of a claim.
type ClusterClaimSpec struct {
	// value is the value of the claim, 1 to 1024 characters. Required.
	// +required
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=1024
	Value string `json:"value,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterClaimList is a list of ClusterClaims.
type ClusterClaimList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the ClusterClaims.
	Items []ClusterClaim `json:"items"`
}
