// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterSetMember says that one cluster is in one cluster set. It is named "<cluster>.<set>", is read only, and is
// computed from the cluster's labels and the set's selector. Users see the members of the sets that they may get.
type ClusterSetMember struct {
	metav1.TypeMeta
	// metadata carries the labels of the cluster. creationTimestamp is the later of the cluster's and the set's.
	metav1.ObjectMeta

	// spec names the set and the cluster.
	Spec ClusterSetMemberSpec
	// status is how the cluster is, as its ManagedCluster says.
	Status ClusterSetMemberStatus
}

// ClusterSetMemberSpec names the set and the cluster of a member.
type ClusterSetMemberSpec struct {
	// clusterSet is the name of the ManagedClusterSet.
	ClusterSet string
	// cluster is the name of the ManagedCluster.
	Cluster string
}

// ClusterSetMemberStatus is how the cluster of a member is.
type ClusterSetMemberStatus struct {
	// accepted says that the hub accepts the cluster (spec.hubAcceptsClient).
	Accepted bool
	// joined is the cluster's condition ManagedClusterJoined: True, False or Unknown.
	Joined metav1.ConditionStatus
	// available is the cluster's condition ManagedClusterConditionAvailable: True, False or Unknown.
	Available metav1.ConditionStatus
	// kubernetesVersion is the version of the cluster's API server.
	KubernetesVersion string
	// selectedBy is the selector of the set that selected the cluster.
	SelectedBy SelectedBy
	// taints are those of the cluster, each written key=value:effect.
	Taints []string
}

// SelectedBy is the selector that made a cluster a member.
type SelectedBy struct {
	// type is the set's selectorType, as v1beta1 writes it.
	Type string
	// selector is the label selector in kubectl's notation, such as info.open-cluster-management.io/region=apac.
	// It is empty when the set selects every cluster.
	Selector string
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterSetMemberList is a list of ClusterSetMember.
type ClusterSetMemberList struct {
	metav1.TypeMeta
	// metadata is the standard list metadata.
	metav1.ListMeta
	// items are the members, ordered by set and then by cluster.
	Items []ClusterSetMember
}
