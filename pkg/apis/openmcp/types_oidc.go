// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package openmcp

import (
	rbacv1 "k8s.io/api/rbac/v1"
)

// OIDCProviderConfig defines an OIDC provider, and the roles of its users and groups.
type OIDCProviderConfig struct {
	// name is the name of the OIDC provider, a DNS subdomain of 1 to 253 characters that is not "system". It is also the name of the user in the
	// kubeconfig.
	Name string
	// issuer is the URL of the OIDC provider, exactly as in its tokens, at most 2048 characters.
	Issuer string
	// clientID is the ID of the client that requests tokens from the OIDC provider, 1 to 2048 characters. The cluster accepts tokens for this client.
	ClientID string
	// groupsPrefix is the prefix of the names of groups in RBAC, at most 253 characters. It is used exactly as it is, so include the colon at its
	// end. The default is the name of the provider and a colon. With an empty prefix, the OIDC provider can put its users into any group of the
	// cluster.
	GroupsPrefix *string
	// groupsClaim is the claim of a token that contains the user's groups, at most 253 characters. The default is groups, also if the value is empty.
	GroupsClaim *string
	// usernamePrefix is the prefix of the names of users in RBAC, at most 253 characters. It is used exactly as it is, so include the colon at its
	// end. The default is the name of the provider and a colon. With an empty prefix, the OIDC provider can give its users the name of any user of
	// the cluster.
	UsernamePrefix *string
	// usernameClaim is the claim of a token that contains the user's name, at most 253 characters. The default is sub, also if the value is empty.
	UsernameClaim *string
	// extraScopes are scopes to request from the OIDC provider in addition to openid: at most 64, each of at most 253 characters.
	ExtraScopes []string
	// roleBindings grant roles of the cluster to users and groups of the OIDC provider: at most 256.
	RoleBindings []RoleBindings
}

// RoleBindings grants each of its roles to each of its subjects.
type RoleBindings struct {
	// subjects are the users, groups and ServiceAccounts that get the roles, at most 512. The names of users and groups get the prefixes, unless they
	// start with "::".
	Subjects []rbacv1.Subject
	// roleRefs reference the roles, at most 256. A role that does not exist in the cluster grants no rights.
	RoleRefs []RoleRef
}
