// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

// Built-in properties, which the hub derives from the facts of a node. No spec can set them, except the last one.
const (
	// PropertyArch has the value of status.arch.
	PropertyArch = "openhorizon.arch"
	// PropertyCPU has the value of status.cpu.
	PropertyCPU = "openhorizon.cpu"
	// PropertyMemory has the value of status.memory.
	PropertyMemory = "openhorizon.memory"
	// PropertyKubernetesVersion has the value of status.kubernetesVersion.
	PropertyKubernetesVersion = "openhorizon.kubernetesVersion"
	// PropertyKubernetesNamespace has the value of status.namespace.
	PropertyKubernetesNamespace = "openhorizon.kubernetesNamespace"
	// PropertyKubernetesNamespaceScoped has the value of status.namespaceScoped.
	PropertyKubernetesNamespaceScoped = "openhorizon.kubernetesNamespaceScoped"
	// PropertyAllowPrivileged reports whether privileged containers may run. Users may set it, as in Open Horizon.
	PropertyAllowPrivileged = "openhorizon.allowPrivileged"
)

// Labels of EdgePlacements and of their works.
const (
	// NodeLabel is the name of the node.
	NodeLabel = GroupName + "/node"
	// PolicyLabel is the name of the policy, or its hash if the name is too long for a label.
	PolicyLabel = GroupName + "/policy"
	// PatternLabel is the name of the pattern, or its hash if the name is too long for a label.
	PatternLabel = GroupName + "/pattern"
)

// AuthorAnnotation of a DeploymentPolicy, DeploymentPattern or EdgeService records the user who last wrote its spec, as JSON. A policy or
// pattern can deploy services of other namespaces only if its author may get them. With the feature gate NilExecutorValidating, works
// without an executor are created only if the authors of the policy or pattern and of its services may have such works. Only hub-apiserver
// writes it.
const AuthorAnnotation = GroupName + "/author"

// Types of conditions of DeploymentPolicies and DeploymentPatterns.
const (
	// ConditionValid reports whether all services exist, may be used, and can be deployed together.
	ConditionValid = "Valid"
	// ConditionPlaced reports whether each selected node has its placement.
	ConditionPlaced = "Placed"
	// ConditionRunning reports whether each placement is Running.
	ConditionRunning = "Running"
)

// Reasons of the conditions of DeploymentPolicies and DeploymentPatterns.
const (
	// ReasonAsExpected is set when the state is the desired one.
	ReasonAsExpected = "AsExpected"
	// ReasonServiceNotFound is set when no EdgeService exists for any of the versions that the spec names.
	ReasonServiceNotFound = "ServiceNotFound"
	// ReasonServiceNotAllowed is set when a service of another namespace is no longer public, and the user who wrote the spec may not get it.
	ReasonServiceNotAllowed = "ServiceNotAllowed"
	// ReasonNoBoundSet is set when no set is bound to the namespace, so that no node can be selected.
	ReasonNoBoundSet = "NoBoundSet"
	// ReasonNoNodeSelected is set when the rules exclude every node.
	ReasonNoNodeSelected = "NoNodeSelected"
	// ReasonProgressing is set when placements are in progress.
	ReasonProgressing = "Progressing"
	// ReasonPlacementsFailed is set when placements are Failed.
	ReasonPlacementsFailed = "PlacementsFailed"
)

// Kinds that a placement can belong to.
const (
	// KindDeploymentPolicy is the kind DeploymentPolicy.
	KindDeploymentPolicy = "DeploymentPolicy"
	// KindDeploymentPattern is the kind DeploymentPattern.
	KindDeploymentPattern = "DeploymentPattern"
)

const (
	// PlacementFinalizer protects an EdgePlacement until its work is deleted.
	PlacementFinalizer = GroupName + "/work"
	// PlacementHashLabel of a work is a hash of the namespace and the name of its EdgePlacement. The hub created the works that have it.
	PlacementHashLabel = GroupName + "/placement-hash"
	// PlacementAnnotation of a work is the namespace and the name of its EdgePlacement, as <namespace>/<name>.
	PlacementAnnotation = GroupName + "/placement"
)
