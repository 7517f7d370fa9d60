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

// ClusterSetMember represents the membership of one cluster in one cluster set. Its name is "<cluster>.<set>". It is read-only: the server computes
// it from the labels of the cluster and the selector of the set. Users see the members of the sets for which they have the permission "get
// managedclustersets".
type ClusterSetMember struct {
	metav1.TypeMeta `json:",inline"`
	// metadata has the labels of the cluster. Its creationTimestamp is the later one of those of the cluster and of the set.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec identifies the set and the cluster.
	Spec ClusterSetMemberSpec `json:"spec"`
	// status represents the observed state of the cluster, as in its ManagedCluster.
	// +optional
	Status ClusterSetMemberStatus `json:"status,omitempty"`
}

// ClusterSetMemberSpec identifies the set and the cluster of a member.
type ClusterSetMemberSpec struct {
	// clusterSet is the name of the ManagedClusterSet.
	ClusterSet string `json:"clusterSet"`
	// cluster is the name of the ManagedCluster.
	Cluster string `json:"cluster"`
}

// ClusterSetMemberStatus represents the observed state of the cluster of a member.
type ClusterSetMemberStatus struct {
	// accepted reports whether the hub accepts the cluster, as in spec.hubAcceptsClient of the ManagedCluster.
	Accepted bool `json:"accepted"`
	// joined is the status of the condition ManagedClusterJoined of the cluster: True, False or Unknown.
	Joined metav1.ConditionStatus `json:"joined"`
	// available is the status of the condition ManagedClusterConditionAvailable of the cluster: True, False or Unknown.
	Available metav1.ConditionStatus `json:"available"`
	// kubernetesVersion is the Kubernetes version of the cluster's API server, such as v1.37.1.
	// +optional
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// selectedBy is the selector of the set, which selects the cluster.
	SelectedBy SelectedBy `json:"selectedBy"`
	// taints are the taints of the cluster, each in the form key=value:effect.
	// +optional
	// +listType=atomic
	Taints []string `json:"taints,omitempty"`
}

// SelectedBy is the selector by which a cluster is a member of a set.
type SelectedBy struct {
	// type is the selectorType of the set, as in v1beta1.
	Type string `json:"type"`
	// selector is the label selector in the syntax of kubectl, such as info.open-cluster-management.io/region=apac. It is empty if the set selects
	// all clusters.
	// +optional
	Selector string `json:"selector,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterSetMemberList is a list of ClusterSetMembers.
type ClusterSetMemberList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the ClusterSetMembers, ordered by set and then by cluster.
	Items []ClusterSetMember `json:"items"`
}
