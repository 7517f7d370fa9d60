// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterprovider

// The conditions that every provider sets.
const (
	// ConditionReady of a Cluster is True if the Cluster can be used.
	ConditionReady = "Ready"
	// ConditionForeignFinalizers of a Cluster that is being deleted is True if it no longer has finalizers of other controllers.
	ConditionForeignFinalizers = "ForeignFinalizers"
	// ConditionAccess of an AccessRequest is True if its access is in place.
	ConditionAccess = "AccessReady"
	// ConditionDenied of an AccessRequest is True once it has been denied.
	ConditionDenied = "Denied"
	// ConditionRoles of an AccessRequest that refers to roles is True if the cluster has them. It follows the cluster.
	ConditionRoles = "RolesFound"
	// ConditionOIDCTrusted of an AccessRequest describes how the cluster accepts the tokens of its issuer. It is False while the cluster may trust a
	// different issuer because of it.
	ConditionOIDCTrusted = "OIDCTrusted"
)
