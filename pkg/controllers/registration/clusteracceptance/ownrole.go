// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteracceptance

import (
	"context"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/agentroles"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/record"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// sharedInterval is the interval of checks of a cluster whose own role stays until the shared one is in force.
const sharedInterval = 10 * time.Second

// shares reports whether agents get their rights outside of the namespaces of their clusters from the shared role. Then only clusters of an older
// hub have a role of their own. The process may delete these, and does not have the permissions to change them.
func (r *Reconciler) shares() bool { return r.AgentRoles.Roles != agentroles.PerCluster }

// ownRules returns the rules of the ClusterRole of one cluster.
func (r *Reconciler) ownRules(cluster string) []rbacv1.PolicyRule {
	rules := agentroles.Rules(cluster)
	if r.AgentRoles.ListCSRs {
		rules[0].Verbs = append(rules[0].Verbs, agentroles.ListCSRsRules()[0].Verbs...)
	}
	return rules
}

// deniedRules returns the rules by which the agents of a denied cluster see that it is denied.
func deniedRules(cluster string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups: []string{clusterv1.GroupName}, Resources: []string{"managedclusters"}, ResourceNames: []string{cluster},
		Verbs: []string{"get", "list", "watch"},
	}}
}

func clusterRole(cluster string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: objectMeta(cluster, "", registration.ClusterRole(cluster))}
}

func clusterRoleBinding(cluster string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: objectMeta(cluster, "", registration.ClusterRole(cluster)),
		RoleRef:    roleRef(registration.ClusterRole(cluster)), Subjects: subjects(cluster),
	}
}

// ensureOwnRole applies the ClusterRole of a cluster and its binding. A record of an older hub has been copied from it before.
func (r *Reconciler) ensureOwnRole(ctx context.Context, cluster string) error {
	role := clusterRole(cluster)
	role.Rules = r.ownRules(cluster)
	err := ensure(ctx, r, role, &rbacv1.ClusterRole{}, func(got *rbacv1.ClusterRole) (replace bool) {
		// By an aggregation rule others would write the rules. The hub's own policy admits no role that has one.
		got.Rules, got.AggregationRule = role.Rules, nil
		record.TakeOff(got)
		return false
	})
	if err != nil {
		return err
	}
	binding := clusterRoleBinding(cluster)
	return ensure(ctx, r, binding, &rbacv1.ClusterRoleBinding{}, func(got *rbacv1.ClusterRoleBinding) (replace bool) {
		got.Subjects = binding.Subjects
		return got.RoleRef != binding.RoleRef
	})
}

// dropOwnRole deletes the role and the binding of an accepted cluster, once the shared role grants its agents the same. The cluster has a record.
func (r *Reconciler) dropOwnRole(ctx context.Context, cluster string) (again time.Duration, err error) {
	key := client.ObjectKey{Name: registration.ClusterRole(cluster)}
	if !r.shares() || !r.cached(ctx, &rbacv1.ClusterRole{}, key) && !r.cached(ctx, &rbacv1.ClusterRoleBinding{}, key) {
		return 0, nil
	}
	ready, err := r.AgentRoles.InForce(ctx, r.client, r.live)
	if err != nil {
		return 0, err
	}
	if !ready {
		return sharedInterval, nil
	}
	return 0, r.deleteOwnRole(ctx, cluster)
}

// deleteOwnRole deletes the ClusterRole of a cluster, even if others have bound more users to it.
func (r *Reconciler) deleteOwnRole(ctx context.Context, cluster string) error {
	for _, rights := range []client.Object{clusterRoleBinding(cluster), clusterRole(cluster)} {
		if err := r.delete(ctx, rights); err != nil {
			return err
		}
	}
	return nil
}

// denyOwnRole limits the agents of a cluster to seeing that it is denied. With the shared role, hub-apiserver does that, and the cluster's own role
// is deleted. The role may not exist.
func (r *Reconciler) denyOwnRole(ctx context.Context, cluster string) error {
	if r.shares() {
		return r.deleteOwnRole(ctx, cluster)
	}
	role := clusterRole(cluster)
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(role), role); err != nil {
		return kit.IgnoreGone(err)
	}
	_, err := kit.Patch(ctx, r.client, role, func(role *rbacv1.ClusterRole) {
		metav1.SetMetaDataLabel(&role.ObjectMeta, registration.ClusterNameLabel, cluster)
		role.AggregationRule, role.Rules = nil, deniedRules(cluster)
		record.TakeOff(role)
	})
	return err
}

// tooMuch reports whether a denied cluster has more of its own in the caches than denyOwnRole leaves.
func (r *Reconciler) tooMuch(ctx context.Context, cluster string) bool {
	role := clusterRole(cluster)
	found := r.client.Get(ctx, client.ObjectKeyFromObject(role), role) == nil
	if r.shares() {
		return found || r.cached(ctx, &rbacv1.ClusterRoleBinding{}, client.ObjectKeyFromObject(role))
	}
	return found && (len(role.Rules) > len(deniedRules(cluster)) || record.IsOn(role))
}

// clusterNameOf returns the name of the cluster of a ClusterRole.
func clusterNameOf(role *rbacv1.ClusterRole) string {
	return strings.TrimPrefix(role.Name, registration.ClusterRole(""))
}
