// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// DeploymentPolicy deploys a service to all nodes that match. It reaches only the nodes of the sets that are bound to its namespace by a
// ManagedClusterSetBinding.
type DeploymentPolicy struct {
	metav1.TypeMeta
	// metadata is the standard object metadata. The name is a DNS subdomain of at most 244 characters, because the names of placements are
	// derived from it.
	metav1.ObjectMeta

	// spec defines the service to deploy and the nodes to deploy it to. Users write it.
	Spec DeploymentPolicySpec
	// status represents the observed state of the policy's placements. The hub writes it.
	Status DeploymentStatus
}

// DeploymentPolicySpec defines the service to deploy and the nodes to deploy it to.
type DeploymentPolicySpec struct {
	// label is a short human-readable name, at most 253 characters.
	Label string
	// description is a human-readable description, at most 4096 characters.
	Description string
	// service is the service to deploy.
	Service PolicyService
	Policy
	// userInput sets variables of services, at most 64.
	UserInput []ServiceInput
}

// PolicyService is the service of a policy.
type PolicyService struct {
	// name is the name of the service, as in spec.url of its EdgeServices, 1 to 253 characters.
	Name string
	// org is the namespace of the EdgeServices. The default is the namespace of the policy. An EdgeService in another namespace must be
	// public, or the user who writes the policy must have the permission to get it. At most 63 characters.
	Org string
	// arch is the architecture of the service, such as amd64. "" (the default) and "*" mean the architecture of each node.
	Arch string
	// clusterNamespace is the namespace to which the service is deployed, a DNS label of at most 63 characters. It takes precedence over a
	// namespace in the archive. A namespace-scoped node gets the service only if this is its namespace. The default is the namespace in the
	// archive, or else the namespace of the agent. It is ignored for devices.
	ClusterNamespace string
	// serviceVersions are the versions that may be deployed, 1 to 32, each once. A node gets the first version, by priority, that fits it.
	ServiceVersions []ServiceVersion
}

// DeploymentStatus represents the observed state of a policy or a pattern.
type DeploymentStatus struct {
	// observedGeneration is the metadata.generation that this status describes.
	ObservedGeneration int64
	// conditions represent the latest observations of the state. The types are Valid, Placed and Running. At most 16.
	Conditions []metav1.Condition
	// nodes counts the nodes of the sets that are bound to the namespace.
	Nodes NodeCounts
	// excluded counts the nodes to which nothing is deployed, by the first rule that excludes them, at most 32 rules.
	Excluded []ExcludedNodes
}

// NodeCounts contains numbers of nodes, each 0 or more.
type NodeCounts struct {
	// reached is the number of nodes in the sets that are bound to the namespace.
	Reached int32
	// selected is the number of these nodes that no rule excludes.
	Selected int32
	// placed is the number of nodes that have a placement.
	Placed int32
	// running is the number of nodes whose cluster reports that everything runs.
	Running int32
	// failed is the number of nodes whose placement is Failed.
	Failed int32
}

// ExcludedNodes counts the nodes that one rule excludes.
type ExcludedNodes struct {
	// reason is a CamelCase word for the rule, as in DeployChecks. 1 to 63 characters.
	Reason string
	// nodes is the number of nodes, 0 or more.
	Nodes int32
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// DeploymentPolicyList is a list of DeploymentPolicies.
type DeploymentPolicyList struct {
	metav1.TypeMeta
	// metadata is the standard list metadata.
	metav1.ListMeta
	// items is the list of DeploymentPolicies.
	Items []DeploymentPolicy
}
