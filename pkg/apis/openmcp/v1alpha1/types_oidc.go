// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	rbacv1 "k8s.io/api/rbac/v1"
)

// OIDCProviderConfig defines an OIDC provider, and the roles of its users and groups.
//
// The names of users and groups in RBAC are prefixed with usernamePrefix and groupsPrefix, so that no user of the OIDC provider gets the rights of
// another user of the cluster:
//
//	usernamePrefix     name in RBAC of the user "ann" of the provider "corp"
//	not set            corp:ann
//	""                 ann
//	"my-user:"         my-user:ann
//	"my-user"          my-userann
//
// A prefix is used exactly as it is. Before version 0.14 of openMCP, Default appended a colon to a prefix without one at its end. To get the same
// names, include the colon in the prefix.
type OIDCProviderConfig struct {
	// name is the name of the OIDC provider, a DNS subdomain of 1 to 253 characters that is not "system". It is also the name of the user in the
	// kubeconfig. Required.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=253
	// +k8s:validation:pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
	Name string `json:"name"`
	// issuer is the URL of the OIDC provider, exactly as in its tokens, at most 2048 characters. Required.
	// +k8s:validation:minLength=1
	// +k8s:validation:pattern="^https?://[^\\s/$.?#].[^\\s]*$"
	// +k8s:validation:maxLength=2048
	Issuer string `json:"issuer"`
	// clientID is the ID of the client that requests tokens from the OIDC provider, 1 to 2048 characters. The cluster accepts tokens for this client.
	// Required.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=2048
	ClientID string `json:"clientID"`
	// groupsPrefix is the prefix of the names of groups in RBAC, at most 253 characters. It is used exactly as it is, so include the colon at its
	// end. The default is the name of the provider and a colon. With an empty prefix, the OIDC provider can put its users into any group of the
	// cluster.
	// +optional
	// +k8s:validation:maxLength=253
	GroupsPrefix *string `json:"groupsPrefix,omitempty"`
	// groupsClaim is the claim of a token that contains the user's groups, at most 253 characters. The default is groups, also if the value is empty.
	// +optional
	// +default="groups"
	// +k8s:validation:maxLength=253
	GroupsClaim *string `json:"groupsClaim,omitempty"`
	// usernamePrefix is the prefix of the names of users in RBAC, at most 253 characters. It is used exactly as it is, so include the colon at its
	// end. The default is the name of the provider and a colon. With an empty prefix, the OIDC provider can give its users the name of any user of
	// the cluster.
	// +optional
	// +k8s:validation:maxLength=253
	UsernamePrefix *string `json:"usernamePrefix,omitempty"`
	// usernameClaim is the claim of a token that contains the user's name, at most 253 characters. The default is sub, also if the value is empty.
	// +optional
	// +default="sub"
	// +k8s:validation:maxLength=253
	UsernameClaim *string `json:"usernameClaim,omitempty"`
	// extraScopes are scopes to request from the OIDC provider in addition to openid: at most 64, each of at most 253 characters.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=64
	// +k8s:validation:items:maxLength=253
	ExtraScopes []string `json:"extraScopes,omitempty"`
	// roleBindings grant roles of the cluster to users and groups of the OIDC provider: at most 256. Required.
	// +listType=atomic
	// +k8s:validation:maxItems=256
	RoleBindings []RoleBindings `json:"roleBindings"`
}

// RoleBindings grants each of its roles to each of its subjects.
type RoleBindings struct {
	// subjects are the users, groups and ServiceAccounts that get the roles, at most 512. The names of users and groups get the prefixes, unless they
	// start with "::". Required.
	// +listType=atomic
	// +k8s:validation:maxItems=512
	Subjects []rbacv1.Subject `json:"subjects"`
	// roleRefs reference the roles, at most 256. A role that does not exist in the cluster grants no rights. Required.
	// +listType=atomic
	// +k8s:validation:maxItems=256
	RoleRefs []RoleRef `json:"roleRefs"`
}

const (
	defaultGroupsClaim   = "groups"
	defaultUsernameClaim = "sub"
)

// Default sets claims that are nil or empty to their defaults, in place, and returns o, which may be nil. It does not change the prefixes:
// GetGroupsPrefix and GetUsernamePrefix read them.
func (o *OIDCProviderConfig) Default() *OIDCProviderConfig {
	if o == nil {
		return nil
	}
	o.GroupsClaim = new(o.GetGroupsClaim())
	o.UsernameClaim = new(o.GetUsernameClaim())
	return o
}

// GetGroupsClaim returns the claim that contains a user's groups.
func (o *OIDCProviderConfig) GetGroupsClaim() string {
	return claim(o.GroupsClaim, defaultGroupsClaim)
}

// GetUsernameClaim returns the claim that contains a user's name.
func (o *OIDCProviderConfig) GetUsernameClaim() string {
	return claim(o.UsernameClaim, defaultUsernameClaim)
}

// GetGroupsPrefix returns the prefix of the names of groups in RBAC.
func (o *OIDCProviderConfig) GetGroupsPrefix() string { return prefix(o.GroupsPrefix, o.Name) }

// GetUsernamePrefix returns the prefix of the names of users in RBAC.
func (o *OIDCProviderConfig) GetUsernamePrefix() string { return prefix(o.UsernamePrefix, o.Name) }

func claim(given *string, otherwise string) string {
	if given == nil || *given == "" {
		return otherwise
	}
	return *given
}

func prefix(given *string, provider string) string {
	if given == nil {
		return provider + ":"
	}
	return *given
}
