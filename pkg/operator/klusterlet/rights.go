// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/operator/klusterlet/plan"
	"github.com/clusterhub/clusterhub/pkg/remote/apply"
)

// rights returns the rights on the management cluster. On a managed cluster elsewhere the controller has the rights of the source.
func rights() []kit.Right {
	operator, core := operatorv1.SchemeGroupVersion, corev1.SchemeGroupVersion
	all := []kit.Right{
		kit.On(operator, "klusterlets", "get", "list", "watch", "patch"),
		kit.On(operator, "klusterlets/status", "patch"),
		// By name: no other Secret can be read. RBAC cannot restrict create to names.
		kit.On(core, "secrets", "get", "list", "watch").Named(plan.SecretNames...),
		kit.On(core, "secrets", "update", "delete").Named(plan.SecretNames[2:]...),
		kit.On(core, "secrets", "create"),
		// To end the works of an agent on this cluster, with the agent's rights.
		kit.On(core, "serviceaccounts/token", "create"),
		// The role of works, whose rules this program does not have.
		kit.On(rbacv1.SchemeGroupVersion, "clusterroles", "bind").Named("admin"),
		kit.On(plan.APIServices.GroupVersion(), "apiservices", "get").Named("v1.work.open-cluster-management.io", "v1alpha1.cluster.open-cluster-management.io"),
		kit.On(schema.GroupVersion{Group: "events.k8s.io", Version: "v1"}, "events", "create", "patch").In("default"),
	}
	for _, kinds := range [][]apply.Mapping{plan.Owned, plan.Shared} {
		for _, k := range kinds {
			verbs := []string{"list", "watch", "get", "create", "patch", "delete"}
			all = append(all, kit.On(k.GroupVersion(), k.Resource, verbs...))
		}
	}
	return append(all, rightsToGrant()...)
}

// rightsToGrant returns the rights of the agents: RBAC lets no user grant rights that the user does not have.
func rightsToGrant() (all []kit.Right) {
	objects, err := deploy.Klusterlet{Name: "k", Namespace: "n"}.Objects()
	if err != nil {
		panic(err) // they are compiled into this program
	}
	for _, o := range objects {
		var rules []rbacv1.PolicyRule
		switch o.GetKind() {
		case "ClusterRole", "Role":
			role := &rbacv1.ClusterRole{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, role); err != nil {
				panic(err)
			}
			rules = role.Rules
		}
		for _, rule := range rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					right := kit.On(schema.GroupVersion{Group: group}, resource, slices.Clone(rule.Verbs)...)
					all = append(all, right.Named(rule.ResourceNames...))
				}
			}
		}
	}
	return all
}
