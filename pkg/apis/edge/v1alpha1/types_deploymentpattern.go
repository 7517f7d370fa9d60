// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// DeploymentPattern deploys a list of services to each node that names the pattern in spec.pattern, and is in one of the sets that
// are bound to the namespace of the pattern.
type DeploymentPattern struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The name is a DNS subdomain of at most 244 characters: placements have it in theirs.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what is deployed. Users write it.
	Spec DeploymentPatternSpec `json:"spec"`
	// status says what came of it. The hub writes it.
	// +optional
	Status DeploymentStatus `json:"status,omitempty"`
}

// DeploymentPatternSpec says which services are deployed.
type DeploymentPatternSpec struct {
	// label is a short text for people, at most 253 characters.
	// +optional
	// +k8s:validation:maxLength=253
	Label string `json:"label,omitempty"`
	// description is a text for people, at most 4096 characters.
	// +optional
	// +k8s:validation:maxLength=4096
	Description string `json:"description,omitempty"`
	// services are the services to deploy, 1 to 32, each once.
	// +listType=atomic
	// +k8s:validation:minItems=1
	// +k8s:validation:maxItems=32
	Services []PatternService `json:"services"`
	// clusterNamespace is the namespace that all services are deployed to, a DNS label of at most 63 characters. With it, the pattern is
	// only for nodes that have that namespace alone; without it (the default), only for those that deploy to any namespace. It is ignored on
	// devices.
	// +optional
	// +k8s:validation:maxLength=63
	ClusterNamespace string `json:"clusterNamespace,omitempty"`
	// userInput sets variables of services, at most 64.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=64
	UserInput []ServiceInput `json:"userInput,omitempty"`
}

// PatternService is a service of a pattern.
type PatternService struct {
	// serviceUrl is the name of the service, as spec.url of its EdgeServices has it, 1 to 253 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=253
	ServiceUrl string `json:"serviceUrl"`
	// serviceOrgid is the namespace of the EdgeServices. The default is the namespace of the pattern. In another namespace, an EdgeService
	// must be public, or the user who writes the pattern must have the permission to get it.
	// +optional
	// +k8s:validation:maxLength=63
	ServiceOrgid string `json:"serviceOrgid,omitempty"`
	// serviceArch is the architecture of the service, such as amd64. "" (the default) and "*" mean the architecture of each node.
	// +optional
	// +k8s:validation:maxLength=63
	ServiceArch string `json:"serviceArch,omitempty"`
	// serviceVersions are the versions that may be deployed, 1 to 32, each once. The first by priority that fits a node is deployed to it.
	// +listType=atomic
	// +k8s:validation:minItems=1
	// +k8s:validation:maxItems=32
	ServiceVersions []ServiceVersion `json:"serviceVersions"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// DeploymentPatternList is a list of DeploymentPattern.
type DeploymentPatternList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the patterns.
	Items []DeploymentPattern `json:"items"`
}
