// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Permission is a verb on a resource or subresource, for one name or for all. Without a namespace, it is for cluster-scoped objects.
type Permission struct {
	// Verb, Group and Resource are as in a PolicyRule: lower case, the plural of the resource, no wildcards.
	Verb, Group, Resource string
	// Subresource is "" for the resource itself.
	Subresource string
	// Name is "" for all names, and for a name that the server has not generated yet.
	Name      string
	Namespace string
}

// String returns the rule that grants the permission as it is written in a Role or ClusterRole, and where it must be bound.
func (p Permission) String() string {
	names := ""
	if p.Name != "" {
		names = fmt.Sprintf("resourceNames: [%q], ", p.Name)
	}
	text := fmt.Sprintf("{apiGroups: [%q], resources: [%q], %sverbs: [%q]}", p.Group, p.RuleResource(), names, p.Verb)
	if p.Namespace != "" {
		text += " in the namespace " + p.Namespace
	}
	return text
}

// Short returns the permission in a few words, without its API group.
func (p Permission) Short() string {
	text := p.Verb + " " + p.RuleResource()
	if p.Name != "" {
		text += " " + p.Name
	}
	if p.Namespace != "" {
		text += " in " + p.Namespace
	}
	return text
}

// RuleResource returns the resource with the subresource, as it is written in the resources of a rule.
func (p Permission) RuleResource() string {
	if p.Subresource == "" {
		return p.Resource
	}
	return p.Resource + "/" + p.Subresource
}

// AllowedBy reports whether a rule grants the permission.
func (p Permission) AllowedBy(rule *rbacv1.PolicyRule) bool {
	return Attributes{Verb: p.Verb, Group: p.Group, Resource: p.Resource, Subresource: p.Subresource}.match(rule) &&
		(len(rule.ResourceNames) == 0 || p.Name != "" && slices.Contains(rule.ResourceNames, p.Name))
}
