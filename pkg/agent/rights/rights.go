// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rights defines how each part of the agent declares its permissions: as RBAC rules, on the hub, on the managed cluster and on the management
// cluster. Tests compare what is deployed with their sum, so that a part that is left out does not keep its rights.
package rights

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Rights are the rights that a part of the agent needs.
type Rights struct {
	// Bootstrap are the rights on the hub of the bootstrap kubeconfig, and Hub those of the agent's own identity.
	Bootstrap, Hub Rules
	// Own are the rights on the managed cluster, and Management those on the cluster that stores the agent's state. Both are the same cluster, unless
	// the agent is detached.
	Own, Management Rules
}

// Rules are RBAC rules for a whole cluster, and for one namespace of it: on the hub the namespace of the managed cluster, on the other clusters that
// of the agent. On the hub, rules on managedclusters are limited to the agent's own ManagedCluster.
type Rules struct {
	Cluster, Namespace []rbacv1.PolicyRule
}

// Rule returns a rule on one resource.
func Rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// Named restricts a rule to the object of a name.
func Named(name string, rule rbacv1.PolicyRule) rbacv1.PolicyRule {
	rule.ResourceNames = []string{name}
	return rule
}

// Sum returns the rights that several parts need together.
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
