// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	rbacv1 "k8s.io/api/rbac/v1"
)

// OIDCProviderConfig is an OIDC provider, and the roles of its users and groups.
//
// The two prefixes are put before the names of users and groups in RBAC, so that no user of the OIDC provider gets the rights
// of another user of the cluster:
//
//	usernamePrefix     name in RBAC of the user "ann" of the provider "corp"
//	not given          corp:ann
//	""                 ann
//	"my-user:"         my-user:ann
//	"my-user"          my-userann
//
// A prefix is used exactly as it is. Before version 0.14 of openMCP, Default added a colon to a prefix without one at its end:
// if you rely on this, write the colon.
type OIDCProviderConfig struct {
	// name is the name of the OIDC provider, a DNS subdomain of at most 253 characters, and not "system". It is the name
	// of the user in the kubeconfig.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=253
	// +k8s:validation:pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
	Name string `json:"name"`
	// issuer is the URL of the OIDC provider, exactly as in its tokens, at most 2048 bytes.
	// +k8s:validation:minLength=1
	// +k8s:validation:pattern="^https?://[^\\s/$.?#].[^\\s]*$"
	// +k8s:validation:maxLength=2048
	Issuer string `json:"issuer"`
	// clientID is the client that asks the OIDC provider for tokens, at most 2048 bytes. The cluster
	// accepts tokens for this client.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=2048
	ClientID string `json:"clientID"`
	// groupsPrefix is put before the names of groups in RBAC, exactly as it is, so include the colon at its end. The
	// default is the name of the provider and a colon. With an empty prefix, the OIDC provider can put its users into
	// any group of the cluster. At most 253 characters.
	// +optional
	// +k8s:validation:maxLength=253
	GroupsPrefix *string `json:"groupsPrefix,omitempty"`
	// groupsClaim is the claim of a token that has the user's groups, at most 253 characters. The default is groups,
	// also for an empty value.
	// +optional
	// +default="groups"
	// +k8s:validation:maxLength=253
	GroupsClaim *string `json:"groupsClaim,omitempty"`
	// usernamePrefix is put before the names of users in RBAC, exactly as it is, so include the colon at its end. The
	// default is the name of the provider and a colon. With an empty prefix, the OIDC provider can give its users the
	// name of any user of the cluster. At most 253 characters.
	// +optional
	// +k8s:validation:maxLength=253
	UsernamePrefix *string `json:"usernamePrefix,omitempty"`
	// usernameClaim is the claim of a token that has the user's name, at most 253 characters. The default is sub, also
	// for an empty value.
	// +optional
	// +default="sub"
	// +k8s:validation:maxLength=253
	UsernameClaim *string `json:"usernameClaim,omitempty"`
	// extraScopes are requested from the OIDC provider, in addition to openid: at most 64.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=64
	ExtraScopes []string `json:"extraScopes,omitempty"`
	// roleBindings give roles of the cluster to users and groups of the OIDC provider: at most 256.
	// +listType=atomic
	// +k8s:validation:maxItems=256
	RoleBindings []RoleBindings `json:"roleBindings"`
}

// RoleBindings gives each of its roles to each of its subjects.
type RoleBindings struct {
	// subjects are the users, groups and ServiceAccounts that get the roles, at most 512. The prefixes are put before
	// the names of users and groups, except before names that begin with "::".
	// +listType=atomic
	// +k8s:validation:maxItems=512
	Subjects []rbacv1.Subject `json:"subjects"`
	// roleRefs name the roles, at most 256. A role that the cluster does not have gives no rights.
	// +listType=atomic
	// +k8s:validation:maxItems=256
	RoleRefs []RoleRef `json:"roleRefs"`
}

const (
	defaultGroupsClaim   = "groups"
	defaultUsernameClaim = "sub"
)

// Default sets the claims that are not given or empty, in place, and returns o, which may be nil. The prefixes stay as they
// are: GetGroupsPrefix and GetUsernamePrefix read them.
func (o *OIDCProviderConfig) Default() *OIDCProviderConfig {
	if o == nil {
		return nil
	}
	o.GroupsClaim = new(o.GetGroupsClaim())
	o.UsernameClaim = new(o.GetUsernameClaim())
	return o
}

// GetGroupsClaim is the claim that has a user's groups.
func (o *OIDCProviderConfig) GetGroupsClaim() string {
	return claim(o.GroupsClaim, defaultGroupsClaim)
}

// GetUsernameClaim is the claim that has a user's name.
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
