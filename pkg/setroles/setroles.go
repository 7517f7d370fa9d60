// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package setroles has the roles of a set, which kubectl hub grant makes and gives.
package setroles

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/selector"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
)

// The roles of a set, each with the rights of the one before it.
const (
	Viewer = "viewer"
	User   = "user"
	Admin  = "admin"
)

// All are the roles of a set.
var All = []string{Admin, User, Viewer}

// Name is that of the ClusterRole and of the ClusterRoleBinding of a role.
func Name(set, role string) string { return "clusterhub:set:" + set + ":" + role }

// Rules grow from role to role. Only an exclusive set has a label that is its own: the labels that other sets select by may bring
// clusters into any number of sets, and who may write these is decided for each label.
func Rules(set *v1beta1.ManagedClusterSet, role string) ([]rbacv1.PolicyRule, error) {
	rule := func(resource string, names []string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{cluster.GroupName}, Resources: []string{resource}, ResourceNames: names, Verbs: verbs}
	}
	name := []string{set.Name}
	rules := []rbacv1.PolicyRule{rule("managedclustersets", name, "get"), rule("managedclustersets/clusters", name, "get")}
	if role == Viewer {
		return rules, nil
	}
	rules = append(rules, rule("managedclustersets/bind", name, "create"))
	if role == User {
		return rules, nil
	}
	internal := &cluster.ManagedClusterSet{}
	if err := v1beta1.Convert_v1beta1_ManagedClusterSet_To_cluster_ManagedClusterSet(set, internal, nil); err != nil {
		return nil, err
	}
	rules[1].Verbs = []string{"get", "update", "patch", "delete"}
	key, value, _ := selector.ExclusivePair(internal)
	if cluster.IsReservedLabel(key) {
		rules = append(rules, rule("managedclusters/label", []string{key + ":" + value}, "create"))
	}
	if key == cluster.ClusterSetLabel { // without that label, a new cluster is put into the set default
		rules = append(rules, rule("managedclusters", nil, "create"))
	}
	return rules, nil
}
