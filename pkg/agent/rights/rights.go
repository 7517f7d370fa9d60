// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rights is how each part of the agent states what it may do: as RBAC rules, on the hub, on the managed cluster and on the management cluster.
// Tests hold what is deployed to the sum of them, so that a part that is left out takes its rights with it.
package rights

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Rights are what a part of the agent needs.
type Rights struct {
	// Bootstrap is asked of the hub with the bootstrap kubeconfig, and Hub with the agent's own identity.
	Bootstrap, Hub Rules
	// Own is asked of the managed cluster, and Management of the cluster that keeps what the agent remembers. Both are the same one,
	// unless the agent is detached.
	Own, Management Rules
}

// Rules are RBAC rules for a whole cluster, or for one namespace of it: on the hub the namespace of the managed cluster, on the
// others that of the agent. On the hub, rules on managedclusters are meant for the agent's own ManagedCluster.
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
		sum.Bootstrap, sum.Hub = plus(sum.Bootstrap, part.Bootstrap), plus(sum.Hub, part.Hub)
		sum.Own, sum.Management = plus(sum.Own, part.Own), plus(sum.Management, part.Management)
	}
	return sum
}

func plus(a, b Rules) Rules {
	return Rules{Cluster: slices.Concat(a.Cluster, b.Cluster), Namespace: slices.Concat(a.Namespace, b.Namespace)}
}
