// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// DeploymentPattern deploys a list of services to each node that names the pattern in spec.pattern, and is in one of the sets that
// are bound to the namespace of the pattern.
type DeploymentPattern struct {
	metav1.TypeMeta
	// metadata is the standard object metadata. The name is a DNS subdomain of at most 244 characters: placements have it in theirs.
	metav1.ObjectMeta

	// spec says what is deployed. Users write it.
	Spec DeploymentPatternSpec
	// status says what came of it. The hub writes it.
	Status DeploymentStatus
}

// DeploymentPatternSpec says which services are deployed.
type DeploymentPatternSpec struct {
	// label is a short text for people, at most 253 characters.
	Label string
	// description is a text for people, at most 4096 characters.
	Description string
	// services are the services to deploy, 1 to 32, each once.
	Services []PatternService
	// clusterNamespace is the namespace that all services are deployed to, a DNS label of at most 63 characters. With it, the pattern is
	// only for nodes that have that namespace alone; without it (the default), only for those that deploy to any namespace. It is ignored on
	// devices.
	ClusterNamespace string
	// userInput sets variables of services, at most 64.
	UserInput []ServiceInput
}

// PatternService is a service of a pattern.
type PatternService struct {
	// serviceUrl is the name of the service, as spec.url of its EdgeServices has it, 1 to 253 characters.
	ServiceUrl string
	// serviceOrgid is the namespace of the EdgeServices. The default is the namespace of the pattern. In another namespace, an EdgeService
	// must be public, or the user who writes the pattern must have the permission to get it.
	ServiceOrgid string
	// serviceArch is the architecture of the service, such as amd64. "" (the default) and "*" mean the architecture of each node.
	ServiceArch string
	// serviceVersions are the versions that may be deployed, 1 to 32, each once. The first by priority that fits a node is deployed to it.
	ServiceVersions []ServiceVersion
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// DeploymentPatternList is a list of DeploymentPattern.
type DeploymentPatternList struct {
	metav1.TypeMeta
	// metadata is the standard list metadata.
	metav1.ListMeta
	// items are the patterns.
	Items []DeploymentPattern
}
