// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/bounds"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
)

// What tenants and providers may write where openMCP's CustomResourceDefinitions have no bound: far above what any of openMCP's
// programs writes. docs/operating.md has the table.
const (
	maxConditions     = 128
	maxName           = 253
	maxURL            = 2048
	maxVersions       = 512
	maxClusterConfigs = 64
	maxPurposes       = 128
	maxEndpoints      = 64
	maxProviderStatus = 128 << 10
	maxRoles          = 128
	maxRules          = 256
	maxRuleEntries    = 256
	maxRoleRefs       = 256
	maxRoleBindings   = 256
	maxSubjects       = 512
	maxExtraScopes    = 64
)

func self(s *string) string { return *s }

func boundClusterProfileSpec(spec, old *openmcp.ClusterProfileSpec, at *field.Path) field.ErrorList {
	version := func(v *openmcp.SupportedK8sVersion) string { return v.Version }
	versions := at.Child("supportedVersions")
	errs := bounds.Count(versions, len(spec.SupportedVersions), len(old.SupportedVersions), maxVersions)
	return append(errs, bounds.Each(versions, "version", spec.SupportedVersions, old.SupportedVersions, maxName, version)...)
}

func boundClusterSpec(spec, old *openmcp.ClusterSpec, at *field.Path) field.ErrorList {
	errs := bounds.Length(at.Child("profile"), spec.Profile, len(old.Profile), maxName)
	errs = append(errs, bounds.Length(at.Child("kubernetes", "version"), spec.Kubernetes.Version, len(old.Kubernetes.Version), maxName)...)
	errs = append(errs, bounds.Count(at.Child("clusterConfigs"), len(spec.ClusterConfigs), len(old.ClusterConfigs), maxClusterConfigs)...)
	errs = append(errs, bounds.Each(at.Child("clusterConfigs"), "name", spec.ClusterConfigs, old.ClusterConfigs, maxName,
		func(r *openmcp.LocalObjectReference) string { return r.Name })...)
	errs = append(errs, bounds.Count(at.Child("purposes"), len(spec.Purposes), len(old.Purposes), maxPurposes)...)
	return append(errs, bounds.Each(at.Child("purposes"), "", spec.Purposes, old.Purposes, maxName, self)...)
}

func boundClusterStatus(status, old *openmcp.ClusterStatus, at *field.Path) field.ErrorList {
	errs := boundStatus(&status.Status, &old.Status, at)
	errs = append(errs, bounds.Length(at.Child("apiServer"), status.APIServer, len(old.APIServer), maxURL)...)
	endpoints := at.Child("endpoints")
	errs = append(errs, bounds.Count(endpoints, len(status.Endpoints), len(old.Endpoints), maxEndpoints)...)
	errs = append(errs, bounds.Each(endpoints, "name", status.Endpoints, old.Endpoints, maxName, func(e *openmcp.Endpoint) string { return e.Name })...)
	errs = append(errs, bounds.Each(endpoints, "url", status.Endpoints, old.Endpoints, maxURL, func(e *openmcp.Endpoint) string { return e.URL })...)
	if status.ProviderStatus != nil {
		before := 0
		if old.ProviderStatus != nil {
			before = len(old.ProviderStatus.Raw)
		}
		errs = append(errs, bounds.Length(at.Child("providerStatus"), string(status.ProviderStatus.Raw), before, maxProviderStatus)...)
	}
	return errs
}

func boundStatus(status, old *openmcp.Status, at *field.Path) field.ErrorList {
	errs := bounds.Length(at.Child("phase"), status.Phase, len(old.Phase), maxName)
	return append(errs, bounds.Count(at.Child("conditions"), len(status.Conditions), len(old.Conditions), maxConditions)...)
}

func boundAccessRequestSpec(spec, old *openmcp.AccessRequestSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if spec.Token != nil {
		before, at := old.Token, at.Child("token")
		if before == nil {
			before = &openmcp.TokenConfig{}
		}
		errs = append(errs, boundPermissions(spec.Token.Permissions, before.Permissions, at.Child("permissions"))...)
		errs = append(errs, boundRoleRefs(spec.Token.RoleRefs, before.RoleRefs, at.Child("roleRefs"))...)
	}
	if spec.OIDC != nil {
		before := old.OIDC
		if before == nil {
			before = &openmcp.OIDCConfig{}
		}
		errs = append(errs, boundOIDC(spec.OIDC, before, at.Child("oidc"))...)
	}
	return errs
}

func boundOIDC(o, old *openmcp.OIDCConfig, at *field.Path) field.ErrorList {
	errs := bounds.Length(at.Child("issuer"), o.Issuer, len(old.Issuer), maxURL)
	errs = append(errs, bounds.Length(at.Child("clientID"), o.ClientID, len(old.ClientID), maxURL)...)
	for name, values := range map[string][2]*string{
		"groupsPrefix": {o.GroupsPrefix, old.GroupsPrefix}, "groupsClaim": {o.GroupsClaim, old.GroupsClaim},
		"usernamePrefix": {o.UsernamePrefix, old.UsernamePrefix}, "usernameClaim": {o.UsernameClaim, old.UsernameClaim},
	} {
		if values[0] != nil {
			before := 0
			if values[1] != nil {
				before = len(*values[1])
			}
			errs = append(errs, bounds.Length(at.Child(name), *values[0], before, maxName)...)
		}
	}
	errs = append(errs, bounds.Count(at.Child("extraScopes"), len(o.ExtraScopes), len(old.ExtraScopes), maxExtraScopes)...)
	errs = append(errs, bounds.Each(at.Child("extraScopes"), "", o.ExtraScopes, old.ExtraScopes, maxName, self)...)
	errs = append(errs, boundPermissions(o.Roles, old.Roles, at.Child("roles"))...)
	bindings := at.Child("roleBindings")
	errs = append(errs, bounds.Count(bindings, len(o.RoleBindings), len(old.RoleBindings), maxRoleBindings)...)
	var subjects []rbacv1.Subject
	var roles []openmcp.RoleRef
	for _, b := range old.RoleBindings {
		subjects, roles = longer(subjects, b.Subjects), longer(roles, b.RoleRefs)
	}
	for i, b := range o.RoleBindings {
		errs = append(errs, bounds.Count(bindings.Index(i).Child("subjects"), len(b.Subjects), len(subjects), maxSubjects)...)
		errs = append(errs, boundRoleRefs(b.RoleRefs, roles, bindings.Index(i).Child("roleRefs"))...)
	}
	return errs
}

func boundRoleRefs(refs, old []openmcp.RoleRef, at *field.Path) field.ErrorList {
	return bounds.Count(at, len(refs), len(old), maxRoleRefs)
}

func boundPermissions(permissions, old []openmcp.PermissionsRequest, at *field.Path) field.ErrorList {
	errs := bounds.Count(at, len(permissions), len(old), maxRoles)
	var rules []rbacv1.PolicyRule
	entries := 0
	for _, p := range old {
		rules = longer(rules, p.Rules)
		for i := range p.Rules {
			for _, list := range entriesOf(&p.Rules[i]) {
				entries = max(entries, len(list))
			}
		}
	}
	for i, p := range permissions {
		at := at.Index(i).Child("rules")
		errs = append(errs, bounds.Count(at, len(p.Rules), len(rules), maxRules)...)
		for j := range p.Rules {
			for name, list := range entriesOf(&p.Rules[j]) {
				errs = append(errs, bounds.Count(at.Index(j).Child(name), len(list), entries, maxRuleEntries)...)
			}
		}
	}
	return errs
}

func entriesOf(r *rbacv1.PolicyRule) map[string][]string {
	return map[string][]string{
		"verbs": r.Verbs, "apiGroups": r.APIGroups, "resources": r.Resources, "resourceNames": r.ResourceNames, "nonResourceURLs": r.NonResourceURLs,
	}
}

func longer[T any](a, b []T) []T {
	if len(b) > len(a) {
		return b
	}
	return a
}
