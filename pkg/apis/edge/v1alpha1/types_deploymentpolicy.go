// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// DeploymentPolicy deploys a service to all nodes that match. It reaches only the nodes of the sets that are bound to its namespace by a
// ManagedClusterSetBinding.
type DeploymentPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The name is a DNS subdomain of at most 244 characters, because the names of placements are
	// derived from it.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the service to deploy and the nodes to deploy it to. Users write it.
	Spec DeploymentPolicySpec `json:"spec"`
	// status represents the observed state of the policy's placements. The hub writes it.
	// +optional
	Status DeploymentStatus `json:"status,omitempty"`
}

// DeploymentPolicySpec defines the service to deploy and the nodes to deploy it to.
type DeploymentPolicySpec struct {
	// label is a short human-readable name, at most 253 characters.
	// +optional
	// +k8s:validation:maxLength=253
	Label string `json:"label,omitempty"`
	// description is a human-readable description, at most 4096 characters.
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
	// name is the name of the service, as in spec.url of its EdgeServices, 1 to 253 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=253
	Name string `json:"name"`
	// org is the namespace of the EdgeServices. The default is the namespace of the policy. An EdgeService in another namespace must be
	// public, or the user who writes the policy must have the permission to get it. At most 63 characters.
	// +optional
	// +k8s:validation:maxLength=63
	Org string `json:"org,omitempty"`
	// arch is the architecture of the service, such as amd64. "" (the default) and "*" mean the architecture of each node.
	// +optional
	// +k8s:validation:maxLength=63
	Arch string `json:"arch,omitempty"`
	// clusterNamespace is the namespace to which the service is deployed, a DNS label of at most 63 characters. It takes precedence over a
	// namespace in the archive. A namespace-scoped node gets the service only if this is its namespace. The default is the namespace in the
	// archive, or else the namespace of the agent. It is ignored for devices.
	// +optional
	// +k8s:validation:maxLength=63
	ClusterNamespace string `json:"clusterNamespace,omitempty"`
	// serviceVersions are the versions that may be deployed, 1 to 32, each once. A node gets the first version, by priority, that fits it.
	// +listType=atomic
	// +k8s:validation:minItems=1
	// +k8s:validation:maxItems=32
	ServiceVersions []ServiceVersion `json:"serviceVersions"`
}

// DeploymentStatus represents the observed state of a policy or a pattern.
type DeploymentStatus struct {
	// observedGeneration is the metadata.generation that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions represent the latest observations of the state. The types are Valid, Placed and Running. At most 16.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +k8s:validation:maxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// nodes counts the nodes of the sets that are bound to the namespace.
	// +optional
	Nodes NodeCounts `json:"nodes,omitempty"`
	// excluded counts the nodes to which nothing is deployed, by the first rule that excludes them, at most 32 rules.
	// +optional
	// +listType=map
	// +listMapKey=reason
	// +k8s:validation:maxItems=32
	Excluded []ExcludedNodes `json:"excluded,omitempty"`
}

// NodeCounts contains numbers of nodes, each 0 or more.
type NodeCounts struct {
	// reached is the number of nodes in the sets that are bound to the namespace.
	// +k8s:validation:minimum=0
	Reached int32 `json:"reached"`
	// selected is the number of these nodes that no rule excludes.
	// +k8s:validation:minimum=0
	Selected int32 `json:"selected"`
	// placed is the number of nodes that have a placement.
	// +k8s:validation:minimum=0
	Placed int32 `json:"placed"`
	// running is the number of nodes whose cluster reports that everything runs.
	// +k8s:validation:minimum=0
	Running int32 `json:"running"`
	// failed is the number of nodes whose placement is Failed.
	// +k8s:validation:minimum=0
	Failed int32 `json:"failed"`
}

// ExcludedNodes counts the nodes that one rule excludes.
type ExcludedNodes struct {
	// reason is a CamelCase word for the rule, as in DeployChecks. 1 to 63 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=63
	Reason string `json:"reason"`
	// nodes is the number of nodes, 0 or more.
	// +k8s:validation:minimum=0
	Nodes int32 `json:"nodes"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// DeploymentPolicyList is a list of DeploymentPolicies.
type DeploymentPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items is the list of DeploymentPolicies.
	Items []DeploymentPolicy `json:"items"`
}
