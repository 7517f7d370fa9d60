// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +genclient:nonNamespaced
// +genclient:onlyVerbs=get,list,watch
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterSetMember says that one cluster is in one cluster set. It is named "<cluster>.<set>", is read only, and is
// computed from the cluster's labels and the set's selector. A user sees the members of the sets that he may get.
type ClusterSetMember struct {
	metav1.TypeMeta `json:",inline"`
	// metadata carries the labels of the cluster. creationTimestamp is the later of the cluster's and the set's.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec names the set and the cluster.
	Spec ClusterSetMemberSpec `json:"spec"`
	// status is how the cluster is, as its ManagedCluster says.
	// +optional
	Status ClusterSetMemberStatus `json:"status,omitempty"`
}

// ClusterSetMemberSpec names the set and the cluster of a member.
type ClusterSetMemberSpec struct {
	// clusterSet is the name of the ManagedClusterSet.
	ClusterSet string `json:"clusterSet"`
	// cluster is the name of the ManagedCluster.
	Cluster string `json:"cluster"`
}

// ClusterSetMemberStatus is how the cluster of a member is.
type ClusterSetMemberStatus struct {
	// accepted says that the hub accepts the cluster (spec.hubAcceptsClient).
	Accepted bool `json:"accepted"`
	// joined is the cluster's condition ManagedClusterJoined: True, False or Unknown.
	Joined metav1.ConditionStatus `json:"joined"`
	// available is the cluster's condition ManagedClusterConditionAvailable: True, False or Unknown.
	Available metav1.ConditionStatus `json:"available"`
	// kubernetesVersion is the version of the cluster's API server.
	// +optional
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// selectedBy is the selector of the set that selected the cluster.
	SelectedBy SelectedBy `json:"selectedBy"`
	// taints are those of the cluster, each written key=value:effect.
	// +optional
	// +listType=atomic
	Taints []string `json:"taints,omitempty"`
}

// SelectedBy is the selector that made a cluster a member.
type SelectedBy struct {
	// type is the set's selectorType, as v1beta1 writes it.
	Type string `json:"type"`
	// selector is the label selector in kubectl's notation, such as info.open-cluster-management.io/region=apac.
	// It is empty when the set selects every cluster.
	// +optional
	Selector string `json:"selector,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterSetMemberList is a list of ClusterSetMember.
type ClusterSetMemberList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the members, ordered by set and then by cluster.
	Items []ClusterSetMember `json:"items"`
}
