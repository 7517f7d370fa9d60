// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteracceptance

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/controllers/registration/agentroles"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// sharedRole returns the role of a hub's manifests, and sharedBinding the binding that its controller creates.
func sharedRole() *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: agentroles.ClusterRole}, Rules: agentroles.Rules("")}
}

func sharedBinding() *rbacv1.ClusterRoleBinding {
	group := func(name string) rbacv1.Subject {
		return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: name}
	}
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Name: agentroles.ClusterRole, Labels: map[string]string{registration.ClusterNameLabel: "managed-clusters"},
		},
		RoleRef:  roleRef(agentroles.ClusterRole),
		Subjects: []rbacv1.Subject{group(registration.ManagedClustersGroup), group(registration.AWSManagedClustersGroup)},
	}
}

// modes are the ways in which agents get their rights.
var modes = []string{agentroles.Shared, agentroles.PerCluster}

// use sets the mode of new processes.
func (f *fixture) use(mode string) *fixture {
	f.roles.Roles = mode
	f.restart()
	return f
}

// want adds what exists in the mode with a role for each cluster.
func (f *fixture) want(shared []string) []string {
	at := slices.IndexFunc(shared, func(has string) bool { return strings.HasPrefix(has, "ConfigMap ") })
	if f.roles.Roles == agentroles.Shared || at < 0 {
		return shared
	}
	rules := len(deniedRules("c1"))
	if slices.Contains(shared, "Lease c1/managed-cluster-lease") {
		rules = len(agentroles.Rules("c1"))
	}
	return slices.Insert(slices.Clone(shared), at+1, fmt.Sprintf("ClusterRole /open-cluster-management:managedcluster:c1 rules=%d", rules),
		"ClusterRoleBinding /open-cluster-management:managedcluster:c1")
}
