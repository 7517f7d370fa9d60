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

// The roles of a set. A user has the rights of a viewer, and a deployer and an admin those of a user: who deploys to the clusters of a set does
// not change them, and the other way round.
const (
	Viewer   = "viewer"
	User     = "user"
	Deployer = "deployer"
	Admin    = "admin"
)

// All are the roles of a set.
var All = []string{Admin, Deployer, User, Viewer}

// Name returns the name of the ClusterRole and of the ClusterRoleBinding of a role.
func Name(set, role string) string { return "clusterhub:set:" + set + ":" + role }

// Rules are those of a role. Only an exclusive set has a label that is its own: the labels that other sets select by may bring
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
	switch role {
	case User:
		return rules, nil
	case Deployer:
		return append(rules, rule("managedclustersets/manifestworks", name, "create")), nil
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
