// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteracceptance

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/agentroles"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/record"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// Controller returns the name, the setup and the permissions of the controller.
func (o Options) Controller() kit.Controller {
	clusters, rbac := clusterv1.SchemeGroupVersion, rbacv1.SchemeGroupVersion
	setup := func(_ context.Context, mgr ctrl.Manager) error { return SetupWithManager(mgr, o) }
	return kit.Controller{Name: reporter, Setup: setup, Rights: append(rightsToGrant(),
		kit.On(clusters, "managedclusters", "get", "list", "watch", "patch"),
		kit.On(clusters, "managedclusters/status", "patch"),
		kit.On(clusters, "managedclusters/finalizers", "update"),
		kit.On(clusters, "managedclusters/accept", "update").By("auto-approval"),
		kit.On(corev1.SchemeGroupVersion, "namespaces", "get", "list", "watch", "create", "delete"),
		kit.On(coordinationv1.SchemeGroupVersion, "leases", "list", "watch", "create"),
		kit.On(coordinationv1.SchemeGroupVersion, "leases", "get", "patch", "delete").Named(registration.LeaseName),
		kit.On(corev1.SchemeGroupVersion, "configmaps", "get", "list", "watch", "create", "patch", "delete").In(record.Namespace),
		kit.On(rbac, "clusterroles", "get", "list", "watch", "delete"),
		kit.On(rbac, "clusterrolebindings", "get", "list", "watch", "delete"),
		kit.On(rbac, "clusterroles", "create", "patch").By(agentroles.PerClusterComponent),
		kit.On(rbac, "clusterrolebindings", "create", "patch").By(agentroles.PerClusterComponent),
		kit.On(rbac, "rolebindings", "get", "list", "watch", "create", "patch", "delete"),
		// The works and add-ons of a cluster are deleted with it.
		kit.On(workv1.SchemeGroupVersion, "manifestworks", "list", "patch", "delete"),
		kit.On(addOns, "managedclusteraddons", "list", "delete"),
		// The names of these roles are known, so bind is enough, and the controller need not have their rules.
		kit.On(rbac, "clusterroles", "bind").Named(registration.AgentClusterRole, registration.WorkClusterRole, registration.InspectorClusterRole),
		kit.On(authenticationv1.SchemeGroupVersion, "selfsubjectreviews", "create"),
		// Events about clusters, which are in no namespace.
		kit.On(eventsv1.SchemeGroupVersion, "events", "create", "patch").In("default"),
	)}
}

// rightsToGrant returns the permissions that a process needs to write the ClusterRoles of accepted clusters.
func rightsToGrant() []kit.Right {
	rights := kit.RightsToGrant(append(agentroles.Rules(""), agentroles.ListCSRsRules()...))
	for i := range rights {
		rights[i] = rights[i].By(agentroles.PerClusterComponent)
	}
	return rights
}
