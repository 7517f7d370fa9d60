// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// DeploymentPattern deploys a list of services to each node that names the pattern in spec.pattern and is in a set that is bound to the
// namespace of the pattern.
type DeploymentPattern struct {
	metav1.TypeMeta
	// metadata is the standard object metadata. The name is a DNS subdomain of at most 244 characters, because the names of placements are
	// derived from it.
	metav1.ObjectMeta

	// spec defines the services to deploy. Users write it.
	Spec DeploymentPatternSpec
	// status represents the observed state of the pattern's placements. The hub writes it.
	Status DeploymentStatus
}

// DeploymentPatternSpec defines the services to deploy.
type DeploymentPatternSpec struct {
	// label is a short human-readable name, at most 253 characters.
	Label string
	// description is a human-readable description, at most 4096 characters.
	Description string
	// services are the services to deploy, 1 to 32, each once.
	Services []PatternService
	// clusterNamespace is the namespace to which all services are deployed, a DNS label of at most 63 characters. If it is set, the pattern is
	// deployed only to namespace-scoped nodes of this namespace; otherwise (the default) only to cluster-scoped nodes. It is ignored for
	// devices.
	ClusterNamespace string
	// userInput sets variables of services, at most 64.
	UserInput []ServiceInput
}

// PatternService is a service of a pattern.
type PatternService struct {
	// serviceUrl is the name of the service, as in spec.url of its EdgeServices, 1 to 253 characters.
	ServiceUrl string
	// serviceOrgid is the namespace of the EdgeServices. The default is the namespace of the pattern. An EdgeService in another namespace must
	// be public, or the user who writes the pattern must have the permission to get it. At most 63 characters.
	ServiceOrgid string
	// serviceArch is the architecture of the service, such as amd64. "" (the default) and "*" mean the architecture of each node.
	ServiceArch string
	// serviceVersions are the versions that may be deployed, 1 to 32, each once. A node gets the first version, by priority, that fits it.
	ServiceVersions []ServiceVersion
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// DeploymentPatternList is a list of DeploymentPatterns.
type DeploymentPatternList struct {
	metav1.TypeMeta
	// metadata is the standard list metadata.
	metav1.ListMeta
	// items is the list of DeploymentPatterns.
	Items []DeploymentPattern
}
