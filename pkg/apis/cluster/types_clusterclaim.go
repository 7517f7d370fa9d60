// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterClaim is a fact that a cluster states about itself, such as its region or product.
type ClusterClaim struct {
	metav1.TypeMeta
	// metadata is the standard object metadata.
	metav1.ObjectMeta

	// spec is the fact.
	Spec ClusterClaimSpec
}

// ClusterClaimSpec contains the value of a claim.
type ClusterClaimSpec struct {
	// value is the value of the claim, 1 to 1024 characters.
	Value string
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterClaimList is a list of ClusterClaims.
type ClusterClaimList struct {
	metav1.TypeMeta
	// metadata is the standard list metadata.
	metav1.ListMeta
	// items are the ClusterClaims.
	Items []ClusterClaim
}
