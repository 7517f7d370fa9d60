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

// sharedInterval is the interval of checks of a cluster whose own role exists until the shared one is in force.
const sharedInterval = 10 * time.Second

// shareRole reports whether agents get their rights outside of the namespaces of their clusters from the shared role. Then only clusters of an older
// hub have a role of their own. The process may delete these, and does not have the permissions to change them.
func (o *objects) shareRole() bool { return o.roles.Roles != agentroles.PerCluster }

// ownRules returns the rules of the ClusterRole of the cluster.
func (o *objects) ownRules() []rbacv1.PolicyRule {
	rules := agentroles.Rules(o.cluster)
	if o.roles.ListCSRs {
		rules[0].Verbs = append(rules[0].Verbs, agentroles.ListCSRsRules()[0].Verbs...)
	}
	return rules
}

// deniedRules returns the rules with which the agents of a denied cluster read that it is denied.
func deniedRules(cluster string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups: []string{clusterv1.GroupName}, Resources: []string{"managedclusters"}, ResourceNames: []string{cluster},
		Verbs: []string{"get", "list", "watch"},
	}}
}

// clusterRole returns the ClusterRole of a cluster without its rules.
func clusterRole(cluster string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: objectMeta(cluster, "", registration.ClusterRole(cluster))}
}

// clusterRoleBinding returns the binding of the ClusterRole of a cluster.
func clusterRoleBinding(cluster string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: objectMeta(cluster, "", registration.ClusterRole(cluster)),
		RoleRef:    roleRef(registration.ClusterRole(cluster)), Subjects: subjects(cluster),
	}
}

// ensureOwnRole applies the ClusterRole of the cluster and its binding. A record of an older hub has been copied from it before.
func (o *objects) ensureOwnRole(ctx context.Context) error {
	role := clusterRole(o.cluster)
	role.Rules = o.ownRules()
	err := ensure(ctx, o, role, &rbacv1.ClusterRole{}, func(got *rbacv1.ClusterRole) (replace bool) {
		// By an aggregation rule others would write the rules. The hub's own policy admits no role that has one.
		got.Rules, got.AggregationRule = role.Rules, nil
		record.RemoveLegacy(got)
		return false
	})
	if err != nil {
		return err
	}
	binding := clusterRoleBinding(o.cluster)
	return ensure(ctx, o, binding, &rbacv1.ClusterRoleBinding{}, func(got *rbacv1.ClusterRoleBinding) (replace bool) {
		got.Subjects = binding.Subjects
		return got.RoleRef != binding.RoleRef
	})
}

// replaceOwnRole deletes the role and the binding of an accepted cluster, once the shared role grants its agents the same. Until then, it returns
// the delay of the next check. The cluster has a record.
func (o *objects) replaceOwnRole(ctx context.Context) (next time.Duration, err error) {
	if !o.shareRole() || !o.cached(ctx, clusterRole(o.cluster)) && !o.cached(ctx, clusterRoleBinding(o.cluster)) {
		return 0, nil
	}
	ready, err := o.roles.InForce(ctx, o.client, o.live)
	if err != nil {
		return 0, err
	}
	if !ready {
		return sharedInterval, nil
	}
	return 0, o.deleteOwnRole(ctx)
}

// deleteOwnRole deletes the ClusterRole of the cluster and its binding, even if others have bound more users to it.
func (o *objects) deleteOwnRole(ctx context.Context) error {
	for _, rights := range []client.Object{clusterRoleBinding(o.cluster), clusterRole(o.cluster)} {
		if err := o.delete(ctx, rights); err != nil {
			return err
		}
	}
	return nil
}

// denyOwnRole limits the agents of the cluster to reading that it is denied. With the shared role, hub-apiserver does that, and the cluster's own role
// is deleted. The role may not exist.
func (o *objects) denyOwnRole(ctx context.Context) error {
	if o.shareRole() {
		return o.deleteOwnRole(ctx)
	}
	role := clusterRole(o.cluster)
	if err := o.live.Get(ctx, client.ObjectKeyFromObject(role), role); err != nil {
		return kit.IgnoreGone(err)
	}
	_, err := kit.Patch(ctx, o.client, role, func(role *rbacv1.ClusterRole) {
		metav1.SetMetaDataLabel(&role.ObjectMeta, registration.ClusterNameLabel, o.cluster)
		role.AggregationRule, role.Rules = nil, deniedRules(o.cluster)
		record.RemoveLegacy(role)
	})
	return err
}

// ownRoleExceedsDenied reports whether the ClusterRole in the cache, or its binding, is more than a denied cluster has after denyOwnRole.
func (o *objects) ownRoleExceedsDenied(ctx context.Context) bool {
	role := clusterRole(o.cluster)
	found := o.client.Get(ctx, client.ObjectKeyFromObject(role), role) == nil
	if o.shareRole() {
		return found || o.cached(ctx, clusterRoleBinding(o.cluster))
	}
	return found && (len(role.Rules) > len(deniedRules(o.cluster)) || record.HasLegacy(role))
}

// clusterNameOf returns the name of the cluster of a ClusterRole.
func clusterNameOf(role *rbacv1.ClusterRole) string {
	return strings.TrimPrefix(role.Name, registration.ClusterRole(""))
}
