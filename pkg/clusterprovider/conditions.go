// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterprovider

// The conditions that every provider sets.
const (
	// ConditionReady of a Cluster is whether it can be used.
	ConditionReady = "Ready"
	// ConditionForeignFinalizers of a Cluster that is deleted is whether no others hold it any more.
	ConditionForeignFinalizers = "ForeignFinalizers"
	// ConditionAccess of an AccessRequest is whether its access is in place.
	ConditionAccess = "AccessReady"
	// ConditionDenied of an AccessRequest is True once it has been denied.
	ConditionDenied = "Denied"
	// ConditionRoles of an AccessRequest that refers to roles is whether the cluster has them. It follows the cluster.
	ConditionRoles = "RolesFound"
	// ConditionOIDCTrusted of an AccessRequest says how the cluster takes the tokens of its issuer. It is False while the cluster may
	// trust another one because of it.
	ConditionOIDCTrusted = "OIDCTrusted"
)
