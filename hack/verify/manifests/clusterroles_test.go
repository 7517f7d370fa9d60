// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/clusterhub/clusterhub/pkg/controllers/registration/agentroles"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// Where clusters have roles of their own, hub-controller-manager makes them with the rules of the agents of that cluster, and with no others.
func TestPolicies_ClusterRoleMatchesAgentRules(t *testing.T) {
	all := built(t, "base")
	at := slices.IndexFunc(all, func(o runtime.Object) bool {
		policy, ok := o.(*admissionv1.ValidatingAdmissionPolicy)
		return ok && policy.Name == "controllers-clusterroles.clusterhub.dev"
	})
	if at < 0 {
		t.Fatal("the policy is not there")
	}
	policy := compiled(t, all[at].(*admissionv1.ValidatingAdmissionPolicy))
	manager := &user.DefaultInfo{Name: "system:serviceaccount:clusterhub-system:hub-controller-manager"}
	made := func(rules ...rbacv1.PolicyRule) string {
		return held(t, policy, manager, agentWrite{"clusterroles", "", nil, &rbacv1.ClusterRole{Rules: rules, ObjectMeta: metav1.ObjectMeta{
			Name: registration.ClusterRole("c1"), Labels: map[string]string{registration.ClusterNameLabel: "c1"}}}})
	}
	if said := made(append(agentroles.Rules("c1"), agentroles.ListCSRsRules()...)...); said != "" {
		t.Errorf("the rules of an agent: %s", said)
	}
	edge := func(resource string, names []string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{"edge.clusterhub.dev"}, Resources: []string{resource}, ResourceNames: names, Verbs: verbs}
	}
	for name, rule := range map[string]rbacv1.PolicyRule{
		"the nodes of all clusters":       edge("edgenodes", nil, "get"),
		"the node of another cluster":     edge("edgenodes", []string{"c2"}, "get"),
		"a node beside its own":           edge("edgenodes", []string{"c1", "c2"}, "get"),
		"the spec of its node":            edge("edgenodes", []string{"c1"}, "update"),
		"to delete its node":              edge("edgenodes", []string{"c1"}, "delete"),
		"to create, and more":             edge("edgenodes", nil, "create", "patch"),
		"facts of all nodes":              edge("edgenodes/status", nil, "update"),
		"placements":                      edge("edgeplacements", []string{"c1"}, "get"),
		"everything in the group":         edge("*", []string{"c1"}, "get"),
		"clusters of all names":           agentroles.Rules("")[2],
		"its cluster in another verb":     {APIGroups: agentroles.Rules("c1")[2].APIGroups, Resources: []string{"managedclusters"}, ResourceNames: []string{"c1"}, Verbs: []string{"delete"}},
		"nodes beside another resource":   {APIGroups: []string{"edge.clusterhub.dev"}, Resources: []string{"edgenodes", "edgeservices"}, Verbs: []string{"create"}},
		"nodes in groups of other owners": {APIGroups: []string{"edge.clusterhub.dev", ""}, Resources: []string{"edgenodes"}, Verbs: []string{"create"}},
	} {
		if made(rule) == "" {
			t.Errorf("%s: let pass", name)
		}
	}
}
