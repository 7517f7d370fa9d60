// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Properties that the hub makes of what it knows of a node. No spec can set them, but for the last.
const (
	// PropertyArch is status.arch.
	PropertyArch = "openhorizon.arch"
	// PropertyCPU is status.cpu.
	PropertyCPU = "openhorizon.cpu"
	// PropertyMemory is status.memory.
	PropertyMemory = "openhorizon.memory"
	// PropertyKubernetesVersion is status.kubernetesVersion.
	PropertyKubernetesVersion = "openhorizon.kubernetesVersion"
	// PropertyKubernetesNamespace is status.namespace.
	PropertyKubernetesNamespace = "openhorizon.kubernetesNamespace"
	// PropertyKubernetesNamespaceScoped is status.namespaceScoped.
	PropertyKubernetesNamespaceScoped = "openhorizon.kubernetesNamespaceScoped"
	// PropertyAllowPrivileged says whether containers with privileges may run. Users may set it, as they may in Open Horizon.
	PropertyAllowPrivileged = "openhorizon.allowPrivileged"
)

// Labels of EdgePlacements, and of the works of these.
const (
	// NodeLabel is the name of the node.
	NodeLabel = GroupName + "/node"
	// PolicyLabel is the name of the policy, or its hash where that is longer than a label may be.
	PolicyLabel = GroupName + "/policy"
	// PatternLabel is the name of the pattern, or its hash where that is longer than a label may be.
	PatternLabel = GroupName + "/pattern"
)

// AuthorAnnotation of a DeploymentPolicy, DeploymentPattern or EdgeService records who wrote its spec last, as JSON: services of other namespaces are
// deployed for a policy or pattern as far as its author may get them, and with the feature gate NilExecutorValidating the authors of all three may
// have works without an executor. Only hub-apiserver writes it.
const AuthorAnnotation = GroupName + "/author"

// Types of conditions of DeploymentPolicies and DeploymentPatterns.
const (
	// ConditionValid is True when all services are there, may be used, and can be deployed together.
	ConditionValid = "Valid"
	// ConditionPlaced is True when each selected node has its placement.
	ConditionPlaced = "Placed"
	// ConditionRunning is True when each placement is Running.
	ConditionRunning = "Running"
)

// Reasons of these conditions.
const (
	// ReasonAsExpected means that the state is the desired one.
	ReasonAsExpected = "AsExpected"
	// ReasonServiceNotFound means that no version of an EdgeService that the spec names exists.
	ReasonServiceNotFound = "ServiceNotFound"
	// ReasonServiceNotAllowed means that a service of another namespace is no longer public, and the user who wrote the spec may not get
	// it.
	ReasonServiceNotAllowed = "ServiceNotAllowed"
	// ReasonNoBoundSet means that no set is bound to the namespace, so that no node can be chosen.
	ReasonNoBoundSet = "NoBoundSet"
	// ReasonNoNodeSelected means that the rules exclude every node.
	ReasonNoNodeSelected = "NoNodeSelected"
	// ReasonProgressing means that placements are in progress.
	ReasonProgressing = "Progressing"
	// ReasonPlacementsFailed means that placements are Failed.
	ReasonPlacementsFailed = "PlacementsFailed"
)

// Kinds that a placement is of.
const (
	// KindDeploymentPolicy is the kind DeploymentPolicy.
	KindDeploymentPolicy = "DeploymentPolicy"
	// KindDeploymentPattern is the kind DeploymentPattern.
	KindDeploymentPattern = "DeploymentPattern"
)

const (
	// PlacementFinalizer keeps an EdgePlacement until its work is gone.
	PlacementFinalizer = GroupName + "/work"
	// PlacementHashLabel of a work is a hash of the namespace and the name of its EdgePlacement. Works with it are the hub's.
	PlacementHashLabel = GroupName + "/placement-hash"
	// PlacementAnnotation of a work has them as <namespace>/<name>.
	PlacementAnnotation = GroupName + "/placement"
)
