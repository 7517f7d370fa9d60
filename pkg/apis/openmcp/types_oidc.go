// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package openmcp

import (
	rbacv1 "k8s.io/api/rbac/v1"
)

// OIDCProviderConfig is an OIDC provider, and the roles of those whom it knows.
type OIDCProviderConfig struct {
	// name of the provider, a DNS subdomain. It is the name of the user in the kubeconfig, and may not be system.
	Name string
	// issuer is the URL of the provider, as its tokens have it.
	Issuer string
	// clientID is who asks the provider for tokens, and whom they have to be for.
	ClientID string
	// groupsPrefix stands before the names of groups in RBAC, as it is: a colon at its end has to be written. Without the
	// field it is the name of the provider and a colon. An empty prefix lets the provider decide which groups of the
	// cluster a user is in.
	GroupsPrefix *string
	// groupsClaim is the claim of a token that has the user's groups. Without the field it is groups, and an empty one means
	// that too.
	GroupsClaim *string
	// usernamePrefix stands before the names of users in RBAC, as it is: a colon at its end has to be written. Without the
	// field it is the name of the provider and a colon. With an empty prefix, the OIDC provider can name any user of the
	// cluster.
	UsernamePrefix *string
	// usernameClaim is the claim of a token that has the user's name. Without the field it is sub, and an empty one means
	// that too.
	UsernameClaim *string
	// extraScopes are requested from the provider, besides openid.
	ExtraScopes []string
	// roleBindings give roles of the cluster to users and groups of the provider.
	RoleBindings []RoleBindings
}

// RoleBindings give each of some roles to each of some subjects.
type RoleBindings struct {
	// subjects are who gets the roles. The prefixes are put before the names of users and groups, unless these begin with ::.
	Subjects []rbacv1.Subject
	// roleRefs name the roles. A role that the cluster does not have gives no right.
	RoleRefs []RoleRef
}
