// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agentroles gives the agents of all clusters their rights at the front by one role, and only while that is safe: the role names no
// cluster, so hub-apiserver must limit each agent to its own (pkg/apiserver/agents). If the group is served otherwise, such as by
// CustomResourceDefinitions, nothing would limit the agents, and the role is not bound. Works have a role of their own: it outlives the
// RoleBindings in the namespaces of the clusters.
package agentroles

import (
	"context"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// The shared ClusterRoles of artifacts/deploy/base. Each has a ClusterRoleBinding of its name.
const (
	ClusterRole         = "clusterhub:managed-cluster-agents"
	ListCSRsClusterRole = "clusterhub:managed-cluster-agents:list-csrs"
	WorksClusterRole    = "clusterhub:managed-cluster-agents:works"
)

// label is the value of the label of the bindings, without which they are in no cache. No cluster can have this name.
const label = "managed-clusters"

// Rules returns the permissions of agents outside of the namespaces of their clusters: those of one cluster, or of all if cluster is empty. RBAC
// cannot limit certificate requests to those of one cluster; hub-agent gets the one that it has created by its name.
func Rules(cluster string) []rbacv1.PolicyRule {
	var names []string
	if cluster != "" {
		names = []string{cluster}
	}
	return []rbacv1.PolicyRule{
		{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"create", "get"}},
		{APIGroups: []string{registration.RegisterGroup}, Resources: []string{"managedclusters/clientcertificates"}, Verbs: []string{"renew"}},
		{
			APIGroups: []string{clusterv1.GroupName}, Resources: []string{"managedclusters"}, ResourceNames: names,
			Verbs: []string{"get", "list", "update", "watch"},
		},
		{
			APIGroups: []string{clusterv1.GroupName}, Resources: []string{"managedclusters/status"}, ResourceNames: names,
			Verbs: []string{"patch", "update"},
		},
		// To leave the hub. It does not include accepting.
		{APIGroups: []string{clusterv1.GroupName}, Resources: []string{"managedclusters/leave"}, ResourceNames: names, Verbs: []string{"update"}},
		// To report the facts of the edge node. RBAC cannot limit create to a name: hub-apiserver lets each agent create only its own.
		{
			APIGroups: []string{edgev1alpha1.GroupName}, Resources: []string{"edgenodes"}, ResourceNames: names,
			Verbs: []string{"get", "list", "watch"},
		},
		{APIGroups: []string{edgev1alpha1.GroupName}, Resources: []string{"edgenodes"}, Verbs: []string{"create"}},
		{
			APIGroups: []string{edgev1alpha1.GroupName}, Resources: []string{"edgenodes/status"}, ResourceNames: names,
			Verbs: []string{"patch", "update"},
		},
	}
}

// ListCSRsRules returns the rules that Options.ListCSRs adds.
func ListCSRsRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"list", "watch"},
	}}
}

// WorksRules returns the permissions of agents on the works of their clusters. The RoleBindings in the namespace of a cluster grant the same, but
// are deleted early when the namespace is: the works in it wait for the agent, which could not remove their finalizers any more.
func WorksRules() []rbacv1.PolicyRule {
	group := []string{workv1.GroupName}
	return []rbacv1.PolicyRule{
		{APIGroups: group, Resources: []string{"manifestworks"}, Verbs: []string{"get", "list", "watch", "update", "patch"}},
		{APIGroups: group, Resources: []string{"manifestworks/status"}, Verbs: []string{"patch", "update"}},
	}
}

// shared is a role that is bound to all agents.
type shared struct {
	name  string
	rules []rbacv1.PolicyRule
	// wanted reports whether the flags ask for the role.
	wanted bool
	// groups are the API groups that hub-apiserver must serve, so that each agent is limited to its own objects.
	groups []string
	// always binds the role in each mode: the role of a single cluster does not have its rules.
	always bool
}

func (o Options) shared() []shared {
	clusters := []string{clusterv1.GroupName}
	return []shared{
		{name: ClusterRole, rules: Rules(""), wanted: true, groups: clusters},
		{name: ListCSRsClusterRole, rules: ListCSRsRules(), wanted: o.ListCSRs, groups: clusters},
		// Whether a cluster is accepted is known from the group of the clusters.
		{name: WorksClusterRole, rules: WorksRules(), wanted: true, groups: []string{clusterv1.GroupName, workv1.GroupName}, always: true},
	}
}

func subjects() []rbacv1.Subject {
	group := func(name string) rbacv1.Subject {
		return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: name}
	}
	return []rbacv1.Subject{group(registration.ManagedClustersGroup), group(registration.AWSManagedClustersGroup)}
}

func roleRef(name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
}

// asWanted reports whether a binding grants the role of its name to all agents.
func asWanted(b *rbacv1.ClusterRoleBinding) bool {
	return b.DeletionTimestamp.IsZero() && b.RoleRef == roleRef(b.Name) && equality.Semantic.DeepEqual(b.Subjects, subjects()) &&
		b.Labels[registration.ClusterNameLabel] == label
}

// InForce reports whether the shared roles grant agents what a role of their own would. The cache alone is not trusted for that.
func (o Options) InForce(ctx context.Context, cached, live client.Reader) (bool, error) {
	for _, from := range []client.Reader{cached, live} {
		for _, s := range o.shared() {
			binding := &rbacv1.ClusterRoleBinding{}
			if err := from.Get(ctx, client.ObjectKey{Name: s.name}, binding); s.wanted && !s.always && (err != nil || !asWanted(binding)) {
				return false, kit.IgnoreGone(err)
			}
		}
	}
	for _, s := range o.shared() {
		role := &rbacv1.ClusterRole{}
		if err := live.Get(ctx, client.ObjectKey{Name: s.name}, role); s.wanted && !s.always && (err != nil || !hasRules(role, s.rules)) {
			return false, kit.IgnoreGone(err)
		}
	}
	return true, nil
}

func hasRules(role *rbacv1.ClusterRole, rules []rbacv1.PolicyRule) bool {
	return !slices.ContainsFunc(rules, func(want rbacv1.PolicyRule) bool {
		return !slices.ContainsFunc(role.Rules, func(has rbacv1.PolicyRule) bool { return equality.Semantic.DeepEqual(has, want) })
	})
}
