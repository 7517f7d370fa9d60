// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Attributes are those of the requests whose names are computed: a verb on a cluster-scoped resource, or on a subresource of one.
type Attributes struct {
	// Verb, Group and Resource are as in a PolicyRule: lower case, the plural of the resource, no wildcards.
	Verb     string
	Group    string
	Resource string
	// Subresource is "" for the resource itself.
	Subresource string
	// Ignored are prefixes of the names of users and groups whose rights are ignored.
	Ignored []string
}

// namesOf returns the names that a ClusterRole grants for the attributes: the union of its rules.
func (a Attributes) namesOf(role *rbacv1.ClusterRole) Names {
	var names []string
	for i := range role.Rules {
		rule := &role.Rules[i]
		if !a.match(rule) {
			continue
		}
		if len(rule.ResourceNames) == 0 {
			return Names{All: true}
		}
		// Names are literal: upstream's ResourceNameMatches supports no wildcard, so "*" is the object named "*".
		names = append(names, rule.ResourceNames...)
	}
	return newNames(names)
}

// match is upstream's RuleAllows without the name. A rule's resource is compared as a whole, so that "sets/status" and "*/status", which name a
// subresource, do not match "sets".
func (a Attributes) match(rule *rbacv1.PolicyRule) bool {
	return matches(rule.Verbs, rbacv1.VerbAll, a.Verb) &&
		matches(rule.APIGroups, rbacv1.APIGroupAll, a.Group) &&
		a.matchResource(rule.Resources)
}

func (a Attributes) matchResource(listed []string) bool {
	if a.Subresource == "" {
		return matches(listed, rbacv1.ResourceAll, a.Resource)
	}
	return matches(listed, rbacv1.ResourceAll, a.Resource+"/"+a.Subresource) || slices.Contains(listed, "*/"+a.Subresource)
}

// counts reports whether the rights of a subject are considered.
func (a Attributes) counts(who subject) bool {
	return !slices.ContainsFunc(a.Ignored, func(prefix string) bool { return strings.HasPrefix(who.name, prefix) })
}

func matches(listed []string, wildcard, wanted string) bool {
	return slices.Contains(listed, wildcard) || slices.Contains(listed, wanted)
}
