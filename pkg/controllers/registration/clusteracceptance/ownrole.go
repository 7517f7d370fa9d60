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
	"github.com/clusterhub/clusterhub/pkg/controllers/kit"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/agentroles"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/record"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// sharedInterval is how often a cluster is looked at whose own role stays until the shared one is in force.
const sharedInterval = 10 * time.Second

// shares says whether agents get their rights outside of the namespaces of their clusters by the shared role. Then no cluster has one of
// its own, but those that an older hub has left. The process may delete them, and does not hold what it takes to change them.
func (r *Reconciler) shares() bool { return r.AgentRoles.Roles != agentroles.PerCluster }

// ownRules are those of the ClusterRole of one cluster.
func (r *Reconciler) ownRules(cluster string) []rbacv1.PolicyRule {
	rules := agentroles.Rules(cluster)
	if r.AgentRoles.ListCSRs {
		rules[0].Verbs = append(rules[0].Verbs, agentroles.ListCSRsRules()[0].Verbs...)
	}
	return rules
}

// deniedRules leave it to the agents of a denied cluster to see that it is.
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

// ensureOwnRole makes the ClusterRole of a cluster and binds it. What an older hub remembered there is in the record by now.
func (r *Reconciler) ensureOwnRole(ctx context.Context, cluster string) error {
	role := clusterRole(cluster)
	role.Rules = r.ownRules(cluster)
	err := ensure(ctx, r, role, &rbacv1.ClusterRole{}, func(got *rbacv1.ClusterRole) (replace bool) {
		// By an aggregation rule others would write the rules. The hub's own policy lets no role pass that has one.
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

// leaveOwnRole removes what an accepted cluster has of its own, once the shared role gives its agents the same. The record is there.
func (r *Reconciler) leaveOwnRole(ctx context.Context, cluster string) (again time.Duration, err error) {
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

// deleteOwnRole removes the ClusterRole of a cluster, also where others have bound more users to it.
func (r *Reconciler) deleteOwnRole(ctx context.Context, cluster string) error {
	for _, rights := range []client.Object{clusterRoleBinding(cluster), clusterRole(cluster)} {
		if err := r.delete(ctx, rights); err != nil {
			return err
		}
	}
	return nil
}

// denyOwnRole leaves the agents of a cluster the right to see that it is denied. Where all share one role, hub-apiserver sees to that,
// and what the cluster may have of its own goes. There may be no role.
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

// tooMuch says whether a denied cluster has more of its own than denyOwnRole leaves, as the caches have it.
func (r *Reconciler) tooMuch(ctx context.Context, cluster string) bool {
	role := clusterRole(cluster)
	found := r.client.Get(ctx, client.ObjectKeyFromObject(role), role) == nil
	if r.shares() {
		return found || r.cached(ctx, &rbacv1.ClusterRoleBinding{}, client.ObjectKeyFromObject(role))
	}
	return found && (len(role.Rules) > len(deniedRules(cluster)) || record.IsOn(role))
}

// clusterNameOf is the name of the cluster that a ClusterRole is for.
func clusterNameOf(role *rbacv1.ClusterRole) string {
	return strings.TrimPrefix(role.Name, registration.ClusterRole(""))
}
