// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterhub/clusterhub/pkg/agent/identity/awsirsa"
	"github.com/clusterhub/clusterhub/pkg/agent/rights"
	"github.com/clusterhub/clusterhub/pkg/agent/tasks/labels"
	"github.com/clusterhub/clusterhub/pkg/agent/tasks/work"
	"github.com/clusterhub/clusterhub/pkg/deploy"
)

// stated are the rights of an agent that may register in any way.
func stated(t *testing.T) rights.Rights {
	t.Helper()
	aws := awsirsa.New()
	aws.HubARN, aws.ManagedARN = hubARN, managedARN
	w := newWorld(t)
	return rights.Sum(w.newAgent().rights(), w.agentOf(w.joiner(), aws).rights(), labels.New(labels.Options{Detect: true}).Rights)
}

// single are rules as rights on one thing each.
func single(rules []rbacv1.PolicyRule) []string {
	all := map[string]bool{}
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{"*"}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range names {
					for _, verb := range rule.Verbs {
						all[fmt.Sprintf("%s %s/%s %s", verb, group, resource, name)] = true
					}
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// rulesOf are the rules of all roles of a kind.
func rulesOf(t *testing.T, kind string, objects []*unstructured.Unstructured) (rules []rbacv1.PolicyRule) {
	t.Helper()
	for _, o := range objects {
		if o.GetKind() != kind {
			continue
		}
		role := &rbacv1.ClusterRole{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, role); err != nil {
			t.Fatal(err)
		}
		rules = append(rules, role.Rules...)
	}
	return rules
}

// What is deployed gives the agent what its parts state, and nothing else. That they do not do more is what all other tests show:
// the worlds of package agenttest allow no more.
func TestRights_OfTheDeployedAgentAreThoseThatItsPartsState(t *testing.T) {
	own, home := stated(t).Own, stated(t).Management
	deployed, err := deploy.Agent{Image: "i", Hub: "h"}.Objects()
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string][]rbacv1.PolicyRule{"ClusterRole": slices.Concat(own.Cluster, home.Cluster), "Role": slices.Concat(own.Namespace, home.Namespace)} {
		if got, want := single(rulesOf(t, kind, deployed)), single(want); !slices.Equal(got, want) {
			t.Errorf("the %s allows\n%q, and the agent states\n%q", kind, got, want)
		}
	}
}

// One that brings works has the rights to what these have besides: they are an admin's to choose.
func TestRights_OfTheDeployedAgentOfWorksAreThoseThatItStates(t *testing.T) {
	own := stated(t).Own.Cluster
	deployed, err := deploy.Agent{Image: "i", Hub: "h", Works: deploy.Works{Role: "admin", Namespaces: []string{"a"}}}.Objects()
	if err != nil {
		t.Fatal(err)
	}
	want := single(slices.Concat(own, work.Rights.Own.Cluster))
	if got := single(rulesOf(t, "ClusterRole", deployed)); !slices.Equal(got, want) {
		t.Errorf("it allows\n%q, and the agent states\n%q", got, want)
	}
}

func TestRights_OfBootstrapTokensAreThoseThatAgentsStateAndTheDefaultSet(t *testing.T) {
	want := append(single(stated(t).Bootstrap.Cluster),
		"create cluster.open-cluster-management.io/managedclusters/label cluster.open-cluster-management.io/clusterset:default")
	slices.Sort(want)
	if got := single(rulesOf(t, "ClusterRole", deploy.Bootstrap(false))); !slices.Equal(got, want) {
		t.Errorf("they allow\n%q, and the agent states\n%q", got, want)
	}
}
