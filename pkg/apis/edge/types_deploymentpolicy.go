// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// DeploymentPolicy deploys a service to all nodes that match. It reaches the nodes of the sets that are bound to its namespace
// (ManagedClusterSetBinding), and no others.
type DeploymentPolicy struct {
	metav1.TypeMeta
	// metadata is the standard object metadata. The name is a DNS subdomain of at most 244 characters: placements have it in theirs.
	metav1.ObjectMeta

	// spec says what is deployed, and where. Users write it.
	Spec DeploymentPolicySpec
	// status says what came of it. The hub writes it.
	Status DeploymentStatus
}

// DeploymentPolicySpec says which service is deployed where.
type DeploymentPolicySpec struct {
	// label is a short text for people, at most 253 characters.
	Label string
	// description is a text for people, at most 4096 characters.
	Description string
	// service is the service to deploy.
	Service PolicyService
	Policy
	// userInput sets variables of services, at most 64.
	UserInput []ServiceInput
}

// PolicyService is the service of a policy.
type PolicyService struct {
	// name of the service, as spec.url of its EdgeServices has it, 1 to 253 characters.
	Name string
	// org is the namespace of the EdgeServices. The default is the namespace of the policy. In another namespace, an EdgeService must be
	// public, or the user who writes the policy must have the permission to get it.
	Org string
	// arch is the architecture to deploy, such as amd64. "" (the default) and "*" mean the architecture of each node.
	Arch string
	// clusterNamespace is the namespace to deploy to, a DNS label of at most 63 characters. It takes precedence over a namespace in the
	// archive. A namespace-scoped node gets the service only if this is its namespace. The default is the namespace in the archive, or else
	// the namespace of the agent. It is ignored on devices.
	ClusterNamespace string
	// serviceVersions are the versions that may be deployed, 1 to 32, each once. The first by priority that fits a node is deployed to it.
	ServiceVersions []ServiceVersion
}

// DeploymentStatus says what came of a policy or a pattern.
type DeploymentStatus struct {
	// observedGeneration is the metadata.generation that the status is about.
	ObservedGeneration int64
	// conditions are Valid, Placed and Running, at most 16.
	Conditions []metav1.Condition
	// nodes counts the nodes of the sets that are bound to the namespace.
	Nodes NodeCounts
	// excluded counts those that nothing is deployed to, by the first rule that says so, at most 32.
	Excluded []ExcludedNodes
}

// NodeCounts are numbers of nodes, each 0 or more.
type NodeCounts struct {
	// reached are the nodes of the sets that are bound to the namespace.
	Reached int32
	// selected are those of them that all rules let in.
	Selected int32
	// placed is the number of nodes that have a placement.
	Placed int32
	// running are those where the cluster says that all runs.
	Running int32
	// failed are those with a placement that is Failed.
	Failed int32
}

// ExcludedNodes counts nodes that one rule excludes.
type ExcludedNodes struct {
	// reason is the rule, one word, as in DeployChecks. 1 to 63 characters.
	Reason string
	// nodes is how many, 0 or more.
	Nodes int32
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// DeploymentPolicyList is a list of DeploymentPolicy.
type DeploymentPolicyList struct {
	metav1.TypeMeta
	// metadata is the standard list metadata.
	metav1.ListMeta
	// items are the policies.
	Items []DeploymentPolicy
}
