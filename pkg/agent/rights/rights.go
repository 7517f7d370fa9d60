// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rights is how each part of the agent states what it may do: as RBAC rules, on the hub and on the agent's own cluster.
// Tests hold what is deployed to the sum of them, so that a part that is left out takes its rights with it.
package rights

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Rights are what a part of the agent needs.
type Rights struct {
	// Bootstrap is asked of the hub with the bootstrap kubeconfig, Hub with the agent's own identity, and Own of the agent's own
	// cluster.
	Bootstrap, Hub, Own Rules
}

// Rules are RBAC rules for a whole cluster, or for one namespace of it: on the hub the namespace of the managed cluster, on the
// agent's own cluster that of the agent. On the hub, rules on managedclusters are meant for the agent's own ManagedCluster.
type Rules struct {
	Cluster, Namespace []rbacv1.PolicyRule
}

// Rule is a rule on one resource.
func Rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// Named narrows a rule to the object of a name.
func Named(name string, rule rbacv1.PolicyRule) rbacv1.PolicyRule {
	rule.ResourceNames = []string{name}
	return rule
}

// Sum is what several parts need together.
func Sum(parts ...Rights) (sum Rights) {
	for _, part := range parts {
		sum.Bootstrap, sum.Hub, sum.Own = plus(sum.Bootstrap, part.Bootstrap), plus(sum.Hub, part.Hub), plus(sum.Own, part.Own)
	}
	return sum
}

func plus(a, b Rules) Rules {
	return Rules{Cluster: slices.Concat(a.Cluster, b.Cluster), Namespace: slices.Concat(a.Namespace, b.Namespace)}
}
