// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterSetMember represents the membership of one cluster in one cluster set. Its name is "<cluster>.<set>". It is read-only: the server computes
// it from the labels of the cluster and the selector of the set. Users see the members of the sets for which they have the permission "get
// managedclustersets".
type ClusterSetMember struct {
	metav1.TypeMeta
	// metadata has the labels of the cluster. Its creationTimestamp is the later one of those of the cluster and of the set.
	metav1.ObjectMeta

	// spec identifies the set and the cluster.
	Spec ClusterSetMemberSpec
	// status represents the observed state of the cluster, as in its ManagedCluster.
	Status ClusterSetMemberStatus
}

// ClusterSetMemberSpec identifies the set and the cluster of a member.
type ClusterSetMemberSpec struct {
	// clusterSet is the name of the ManagedClusterSet.
	ClusterSet string
	// cluster is the name of the ManagedCluster.
	Cluster string
}

// ClusterSetMemberStatus represents the observed state of the cluster of a member.
type ClusterSetMemberStatus struct {
	// accepted reports whether the hub accepts the cluster, as in spec.hubAcceptsClient of the ManagedCluster.
	Accepted bool
	// joined is the status of the condition ManagedClusterJoined of the cluster: True, False or Unknown.
	Joined metav1.ConditionStatus
	// available is the status of the condition ManagedClusterConditionAvailable of the cluster: True, False or Unknown.
	Available metav1.ConditionStatus
	// kubernetesVersion is the Kubernetes version of the cluster's API server, such as v1.37.1.
	KubernetesVersion string
	// selectedBy is the selector of the set, which selects the cluster.
	SelectedBy SelectedBy
	// taints are the taints of the cluster, each in the form key=value:effect.
	Taints []string
}

// SelectedBy is the selector by which a cluster is a member of a set.
type SelectedBy struct {
	// type is the selectorType of the set, as in v1beta1.
	Type string
	// selector is the label selector in the syntax of kubectl, such as info.open-cluster-management.io/region=apac. It is empty if the set selects
	// all clusters.
	Selector string
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterSetMemberList is a list of ClusterSetMembers.
type ClusterSetMemberList struct {
	metav1.TypeMeta
	// metadata is the standard list metadata.
	metav1.ListMeta
	// items are the ClusterSetMembers, ordered by set and then by cluster.
	Items []ClusterSetMember
}
