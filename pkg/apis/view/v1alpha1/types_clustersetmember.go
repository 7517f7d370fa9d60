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

// ClusterSetMember says that one cluster is in one cluster set. It is named "<cluster>.<set>". It is read only: the
// server computes it from the cluster's labels and the set's selector. A user sees the members of the sets for which
// they have the permission "get managedclustersets".
type ClusterSetMember struct {
	metav1.TypeMeta `json:",inline"`
	// metadata has the labels of the cluster. creationTimestamp is that of the cluster or of the set, whichever is
	// later.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec names the set and the cluster.
	Spec ClusterSetMemberSpec `json:"spec"`
	// status is the state of the cluster, taken from its ManagedCluster.
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

// ClusterSetMemberStatus is the state of a member's cluster.
type ClusterSetMemberStatus struct {
	// accepted is true when the hub accepts the cluster (spec.hubAcceptsClient of the ManagedCluster).
	Accepted bool `json:"accepted"`
	// joined is the cluster's condition ManagedClusterJoined: True, False or Unknown.
	Joined metav1.ConditionStatus `json:"joined"`
	// available is the cluster's condition ManagedClusterConditionAvailable: True, False or Unknown.
	Available metav1.ConditionStatus `json:"available"`
	// kubernetesVersion is the version of the cluster's API server, such as v1.37.1.
	// +optional
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// selectedBy is the set's selector, by which the cluster is a member.
	SelectedBy SelectedBy `json:"selectedBy"`
	// taints are the taints of the cluster, each written key=value:effect.
	// +optional
	// +listType=atomic
	Taints []string `json:"taints,omitempty"`
}

// SelectedBy is the selector by which a cluster is a member of a set.
type SelectedBy struct {
	// type is the set's selectorType, as v1beta1 writes it.
	Type string `json:"type"`
	// selector is the label selector as kubectl writes it, such as info.open-cluster-management.io/region=apac. It is
	// empty when the set selects every cluster.
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
