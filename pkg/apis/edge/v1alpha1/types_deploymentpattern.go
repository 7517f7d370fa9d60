// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// DeploymentPattern deploys a list of services to each node that names the pattern in spec.pattern and is in a set that is bound to the
// namespace of the pattern.
type DeploymentPattern struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The name is a DNS subdomain of at most 244 characters, because the names of placements are
	// derived from it.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the services to deploy. Users write it.
	Spec DeploymentPatternSpec `json:"spec"`
	// status represents the observed state of the pattern's placements. The hub writes it.
	// +optional
	Status DeploymentStatus `json:"status,omitempty"`
}

// DeploymentPatternSpec defines the services to deploy.
type DeploymentPatternSpec struct {
	// label is a short human-readable name, at most 253 characters.
	// +optional
	// +k8s:validation:maxLength=253
	Label string `json:"label,omitempty"`
	// description is a human-readable description, at most 4096 characters.
	// +optional
	// +k8s:validation:maxLength=4096
	Description string `json:"description,omitempty"`
	// services are the services to deploy, 1 to 32, each once.
	// +listType=atomic
	// +k8s:validation:minItems=1
	// +k8s:validation:maxItems=32
	Services []PatternService `json:"services"`
	// clusterNamespace is the namespace to which all services are deployed, a DNS label of at most 63 characters. If it is set, the pattern is
	// deployed only to namespace-scoped nodes of this namespace; otherwise (the default) only to cluster-scoped nodes. It is ignored for
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
	// serviceUrl is the name of the service, as in spec.url of its EdgeServices, 1 to 253 characters.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=253
	ServiceUrl string `json:"serviceUrl"`
	// serviceOrgid is the namespace of the EdgeServices. The default is the namespace of the pattern. An EdgeService in another namespace must
	// be public, or the user who writes the pattern must have the permission to get it. At most 63 characters.
	// +optional
	// +k8s:validation:maxLength=63
	ServiceOrgid string `json:"serviceOrgid,omitempty"`
	// serviceArch is the architecture of the service, such as amd64. "" (the default) and "*" mean the architecture of each node.
	// +optional
	// +k8s:validation:maxLength=63
	ServiceArch string `json:"serviceArch,omitempty"`
	// serviceVersions are the versions that may be deployed, 1 to 32, each once. A node gets the first version, by priority, that fits it.
	// +listType=atomic
	// +k8s:validation:minItems=1
	// +k8s:validation:maxItems=32
	ServiceVersions []ServiceVersion `json:"serviceVersions"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// DeploymentPatternList is a list of DeploymentPatterns.
type DeploymentPatternList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items is the list of DeploymentPatterns.
	Items []DeploymentPattern `json:"items"`
}
