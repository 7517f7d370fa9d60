// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// DeploymentPolicy deploys a service to all nodes that match. It reaches the nodes of the sets that are bound to its namespace
// (ManagedClusterSetBinding), and no others.
type DeploymentPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The name is a DNS subdomain of at most 244 characters: placements have it in theirs.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what is deployed, and where. Users write it.
	Spec DeploymentPolicySpec `json:"spec"`
	// status says what came of it. The hub writes it.
	// +optional
	Status DeploymentStatus `json:"status,omitempty"`
}

// DeploymentPolicySpec says which service is deployed where.
type DeploymentPolicySpec struct {
	// label is a short text for people, at most 253 characters.
	// +optional
	// +k8s:validation:maxLength=253
	Label string `json:"label,omitempty"`
	// description is a text for people, at most 4096 characters.
	// +optional
	// +k8s:validation:maxLength=4096
	Description string `json:"description,omitempty"`
	// service is the service to deploy.
	Service PolicyService `json:"service"`
	Policy  `json:",inline"`
	// userInput sets variables of services, at most 64.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=64
	UserInput []ServiceInput `json:"userInput,omitempty"`
}

// PolicyService is the service of a policy.
type PolicyService struct {
	// name of the service, as spec.url of its EdgeServices has it, 1 to 253 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=253
	Name string `json:"name"`
	// org is the namespace of the EdgeServices. The default is the namespace of the policy. In another namespace, an EdgeService must be
	// public, or the user who writes the policy must have the permission to get it.
	// +optional
	// +k8s:validation:maxLength=63
	Org string `json:"org,omitempty"`
	// arch is the architecture to deploy, such as amd64. "" (the default) and "*" mean the architecture of each node.
	// +optional
	// +k8s:validation:maxLength=63
	Arch string `json:"arch,omitempty"`
	// clusterNamespace is the namespace to deploy to, a DNS label of at most 63 characters. It takes precedence over a namespace in the
	// archive. A namespace-scoped node gets the service only if this is its namespace. The default is the namespace in the archive, or else
	// the namespace of the agent. It is ignored on devices.
	// +optional
	// +k8s:validation:maxLength=63
	ClusterNamespace string `json:"clusterNamespace,omitempty"`
	// serviceVersions are the versions that may be deployed, 1 to 32, each once. The first by priority that fits a node is deployed to it.
	// +listType=atomic
	// +k8s:validation:minItems=1
	// +k8s:validation:maxItems=32
	ServiceVersions []ServiceVersion `json:"serviceVersions"`
}

// DeploymentStatus says what came of a policy or a pattern.
type DeploymentStatus struct {
	// observedGeneration is the metadata.generation that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions are Valid, Placed and Running, at most 16.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +k8s:validation:maxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// nodes counts the nodes of the sets that are bound to the namespace.
	// +optional
	Nodes NodeCounts `json:"nodes,omitempty"`
	// excluded counts those that nothing is deployed to, by the first rule that says so, at most 32.
	// +optional
	// +listType=map
	// +listMapKey=reason
	// +k8s:validation:maxItems=32
	Excluded []ExcludedNodes `json:"excluded,omitempty"`
}

// NodeCounts are numbers of nodes, each 0 or more.
type NodeCounts struct {
	// reached are the nodes of the sets that are bound to the namespace.
	// +k8s:validation:minimum=0
	Reached int32 `json:"reached"`
	// selected are those of them that all rules let in.
	// +k8s:validation:minimum=0
	Selected int32 `json:"selected"`
	// placed is the number of nodes that have a placement.
	// +k8s:validation:minimum=0
	Placed int32 `json:"placed"`
	// running are those where the cluster says that all runs.
	// +k8s:validation:minimum=0
	Running int32 `json:"running"`
	// failed are those with a placement that is Failed.
	// +k8s:validation:minimum=0
	Failed int32 `json:"failed"`
}

// ExcludedNodes counts nodes that one rule excludes.
type ExcludedNodes struct {
	// reason is the rule, one word, as in DeployChecks. 1 to 63 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=63
	Reason string `json:"reason"`
	// nodes is how many, 0 or more.
	// +k8s:validation:minimum=0
	Nodes int32 `json:"nodes"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// DeploymentPolicyList is a list of DeploymentPolicy.
type DeploymentPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the policies.
	Items []DeploymentPolicy `json:"items"`
}
