// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	rbacv1 "k8s.io/api/rbac/v1"
)

// OIDCProviderConfig is an OIDC provider, and the roles of those whom it knows.
//
// The two prefixes stand before the names of users and groups in RBAC, so that nobody whom the provider knows can pass for
// somebody of the cluster:
//
//	usernamePrefix     user "ann" of a provider "corp" is
//	not given          corp:ann
//	""                 ann
//	"my-user:"         my-user:ann
//	"my-user"          my-userann
//
// A prefix is taken as it is. Before version 0.14 of openMCP, Default added a colon to a prefix that had none at its end:
// whoever relies on this writes the colon.
type OIDCProviderConfig struct {
	// name of the provider, a DNS subdomain. It is the name of the user in the kubeconfig, and may not be system.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=253
	// +k8s:validation:pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
	Name string `json:"name"`
	// issuer is the URL of the provider, as its tokens have it.
	// +k8s:validation:minLength=1
	// +k8s:validation:pattern="^https?://[^\\s/$.?#].[^\\s]*$"
	// +k8s:validation:maxLength=2048
	Issuer string `json:"issuer"`
	// clientID is who asks the provider for tokens, and whom they have to be for.
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=2048
	ClientID string `json:"clientID"`
	// groupsPrefix stands before the names of groups in RBAC, as it is: a colon at its end has to be written. Without the
	// field it is the name of the provider and a colon. An empty prefix lets the provider decide which groups of the
	// cluster a user is in.
	// +optional
	// +k8s:validation:maxLength=253
	GroupsPrefix *string `json:"groupsPrefix,omitempty"`
	// groupsClaim is the claim of a token that has the user's groups. Without the field it is groups, and an empty one means
	// that too.
	// +optional
	// +default="groups"
	// +k8s:validation:maxLength=253
	GroupsClaim *string `json:"groupsClaim,omitempty"`
	// usernamePrefix stands before the names of users in RBAC, as it is: a colon at its end has to be written. Without the
	// field it is the name of the provider and a colon. An empty prefix lets the provider decide which user of the cluster
	// somebody is.
	// +optional
	// +k8s:validation:maxLength=253
	UsernamePrefix *string `json:"usernamePrefix,omitempty"`
	// usernameClaim is the claim of a token that has the user's name. Without the field it is sub, and an empty one means
	// that too.
	// +optional
	// +default="sub"
	// +k8s:validation:maxLength=253
	UsernameClaim *string `json:"usernameClaim,omitempty"`
	// extraScopes are asked for at the provider, besides openid.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=64
	ExtraScopes []string `json:"extraScopes,omitempty"`
	// roleBindings give roles of the cluster to users and groups of the provider.
	// +listType=atomic
	// +k8s:validation:maxItems=256
	RoleBindings []RoleBindings `json:"roleBindings"`
}

// RoleBindings give each of some roles to each of some subjects.
type RoleBindings struct {
	// subjects are who gets the roles. The prefixes are put before the names of users and groups, unless these begin with ::.
	// +listType=atomic
	// +k8s:validation:maxItems=512
	Subjects []rbacv1.Subject `json:"subjects"`
	// roleRefs name the roles. A role that the cluster does not have gives no right.
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

// GetGroupsPrefix is what stands before the names of groups in RBAC.
func (o *OIDCProviderConfig) GetGroupsPrefix() string { return prefix(o.GroupsPrefix, o.Name) }

// GetUsernamePrefix is what stands before the names of users in RBAC.
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
