// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

// Reason is why a node gets a service, or not, in a form for programs.
type Reason string

// The reasons, in the order in which they are checked.
const (
	// Fits: the node gets it.
	Fits Reason = "Fits"

	// HasPattern: a node that runs a pattern gets nothing by policies.
	HasPattern Reason = "HasPattern"
	// OtherPattern: the node does not run this pattern.
	OtherPattern Reason = "OtherPattern"
	// TypeUnknown: the node is neither a cluster nor a device.
	TypeUnknown Reason = "TypeUnknown"
	// NoVersion: the deployment names no version.
	NoVersion Reason = "NoVersion"

	// VersionMissing: no service of a version exists.
	VersionMissing Reason = "VersionMissing"
	// ArchUnknown: the decision depends on the architecture of the node, which is not known.
	ArchUnknown Reason = "ArchUnknown"
	// ArchMismatch: the deployment, or the version, is for other architectures.
	ArchMismatch Reason = "ArchMismatch"
	// NotForClusters: the version cannot be deployed to nodes that are clusters.
	NotForClusters Reason = "NotForClusters"
	// NotForDevices: the version cannot be deployed to devices.
	NotForDevices Reason = "NotForDevices"
	// ArchiveUnreadable: the archive of the version cannot be read.
	ArchiveUnreadable Reason = "ArchiveUnreadable"

	// ScopeUnknown: it is not known whether the agent is namespace-scoped or cluster-scoped.
	ScopeUnknown Reason = "ScopeUnknown"
	// NamespaceUnknown: the decision depends on the namespace of the agent, which is not known.
	NamespaceUnknown Reason = "NamespaceUnknown"
	// PatternWithoutNamespace: a namespace-scoped node gets only patterns that name its namespace.
	PatternWithoutNamespace Reason = "PatternWithoutNamespace"
	// PatternOtherNamespace: the pattern names a different namespace than that of a namespace-scoped node.
	PatternOtherNamespace Reason = "PatternOtherNamespace"
	// PatternWithNamespace: a cluster-scoped node gets only patterns that name no namespace.
	PatternWithNamespace Reason = "PatternWithNamespace"
	// OtherClusterNamespace: clusterNamespace is not the namespace of a namespace-scoped node.
	OtherClusterNamespace Reason = "OtherClusterNamespace"
	// OtherEmbeddedNamespace: the archive names a different namespace than that of a namespace-scoped node.
	OtherEmbeddedNamespace Reason = "OtherEmbeddedNamespace"
	// SeveralNamespaces: the archive names several namespaces, and clusterNamespace is not set.
	SeveralNamespaces Reason = "SeveralNamespaces"
	// NamespaceInvalid: the target namespace is not a valid name of a namespace.
	NamespaceInvalid Reason = "NamespaceInvalid"
	// ClusterObjects: the archive has objects that a namespace-scoped agent cannot create, and that are not known to exist.
	ClusterObjects Reason = "ClusterObjects"

	// PolicyConstraint: the properties of the node do not satisfy the constraints of the policy.
	PolicyConstraint Reason = "PolicyConstraint"
	// ServiceConstraint: the properties of the node do not satisfy the constraints of the service.
	ServiceConstraint Reason = "ServiceConstraint"
	// NodeConstraint: the properties of policy and service do not satisfy the constraints of the node.
	NodeConstraint Reason = "NodeConstraint"

	// PartOfPattern: the service would fit, and another service of the pattern does not.
	PartOfPattern Reason = "PartOfPattern"
	// ThereAlready: the service is already in that namespace, by another node of the same cluster, or by another deployment.
	ThereAlready Reason = "ThereAlready"
)
