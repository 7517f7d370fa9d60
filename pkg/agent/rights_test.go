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

	"github.com/clusterhub/clusterhub/pkg/agent/health"
	"github.com/clusterhub/clusterhub/pkg/agent/hub"
	"github.com/clusterhub/clusterhub/pkg/agent/identity/awsirsa"
	"github.com/clusterhub/clusterhub/pkg/agent/identity/csr"
	"github.com/clusterhub/clusterhub/pkg/agent/rights"
	"github.com/clusterhub/clusterhub/pkg/agent/tasks/edge"
	"github.com/clusterhub/clusterhub/pkg/agent/tasks/labels"
	"github.com/clusterhub/clusterhub/pkg/agent/tasks/status"
	"github.com/clusterhub/clusterhub/pkg/agent/tasks/work"
	"github.com/clusterhub/clusterhub/pkg/deploy"
)

// stated returns the rights of an agent that may register by any driver.
func stated(t *testing.T) rights.Rights {
	t.Helper()
	aws := awsirsa.New()
	aws.HubARN, aws.ManagedARN = hubARN, managedARN
	w := newWorld(t)
	return rights.Sum(w.newAgent().rights(), w.agentOf(w.joiner(), aws).rights(), labels.New(labels.Options{Detect: true}).Rights,
		edge.New(edge.Node{Own: w.Own(), View: hub.NewView(60)}).Rights)
}

// single splits rules into rights on one resource and verb each.
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

// rulesOf returns the rules of all roles of a kind.
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

// The deployed roles give the agent the rights that its parts declare, and no others. All other tests show that the parts need no more: the worlds of
// package agenttest allow no more.
func TestRights_OfDeployedAgentMatchDeclared(t *testing.T) {
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

// An agent that applies works also has the rights to their objects, which an admin chooses.
func TestRights_OfWorkAgentMatchDeclared(t *testing.T) {
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

// An agent that works may upgrade also has the right to its own Deployment, and to no other.
func TestRights_OfUpgradableAgentMatchDeclared(t *testing.T) {
	states := stated(t)
	deployed, err := deploy.Agent{Image: "i:v1", Hub: "h", Works: deploy.Works{Role: "admin"}, Upgradable: true}.Objects()
	if err != nil {
		t.Fatal(err)
	}
	want := single(slices.Concat(states.Own.Namespace, states.Management.Namespace, work.UpgradeRights.Own.Namespace))
	if got := single(rulesOf(t, "Role", deployed)); !slices.Equal(got, want) || !slices.Contains(got, "patch apps/deployments hub-agent") {
		t.Errorf("it allows\n%q, and the agent states\n%q", got, want)
	}
}

// An agent of one namespace declares no rights outside of it, and has a Role for its own needs. Its works have the ClusterRole admin.
func TestRights_OfNamespaceScopedAgentMatchDeclared(t *testing.T) {
	w, o := newWorld(t), NewOptions()
	own, j := w.Own(), w.joiner()
	own.NamespaceScoped, j.Spoke = true, own
	o.Spoke.NamespaceScoped, o.Spoke.Namespace, o.Edge.Enabled = true, own.Namespace, true
	p := &process{Options: o, health: &health.Health{}, view: hub.NewView(60)}
	a, err := newAgent(j, p.view, csr.New(), status.NewFacts(own, o.Claims), p.tasks(&clusters{own: own, home: j.Home})...)
	if err != nil {
		t.Fatal(err)
	}
	states := a.rights()
	if outside := slices.Concat(states.Own.Cluster, states.Management.Cluster); len(outside) > 0 {
		t.Errorf("it states rights to the cluster: %v", outside)
	}
	deployed, err := deploy.Agent{Image: "i", Hub: "h", Namespace: own.Namespace, Scoped: true}.Objects()
	if err != nil {
		t.Fatal(err)
	}
	want := single(slices.Concat(states.Own.Namespace, states.Management.Namespace))
	if got := single(rulesOf(t, "Role", deployed)); !slices.Equal(got, want) || len(want) < 5 {
		t.Errorf("the Role allows\n%q, and the agent states\n%q", got, want)
	}
	if got := rulesOf(t, "ClusterRole", deployed); len(got) > 0 {
		t.Errorf("a ClusterRole allows %v", got)
	}
}

func TestRights_OfBootstrapTokensMatchDeclared(t *testing.T) {
	want := append(single(stated(t).Bootstrap.Cluster),
		"create cluster.open-cluster-management.io/managedclusters/label cluster.open-cluster-management.io/clusterset:default")
	slices.Sort(want)
	if got := single(rulesOf(t, "ClusterRole", deploy.Bootstrap(false))); !slices.Equal(got, want) {
		t.Errorf("they allow\n%q, and the agent states\n%q", got, want)
	}
}

// A Klusterlet's parts have an account each on each cluster. Each account has the rights that the part declares, and no others.
func TestRights_OfDetachedKlusterletMatchDeclared(t *testing.T) {
	k := deploy.Klusterlet{Name: "k", Namespace: "m", Detached: true, AgentNamespace: "a", Works: deploy.Works{Role: "admin", Namespaces: []string{"a-team"}}}
	managed, management, err := k.Split()
	if err != nil {
		t.Fatal(err)
	}
	o := NewOptions()
	o.Registration, o.Works.Enabled, o.Spoke.Detached, o.HubKubeconfigDir = false, true, true, t.TempDir()
	follower := (&process{Options: o, health: &health.Health{}}).newFollower(&clusters{own: newWorld(t).Own()})
	for account, states := range map[string]rights.Rights{"k-registration-sa": stated(t), "k-work-sa": follower.rights()} {
		for where, side := range map[string]struct {
			objects []*unstructured.Unstructured
			states  rights.Rules
		}{"managed": {managed, states.Own}, "management": {management, states.Management}} {
			for kind, want := range map[string][]rbacv1.PolicyRule{"ClusterRole": side.states.Cluster, "Role": side.states.Namespace} {
				if got, want := single(rulesOf(t, kind, boundTo(account, kind, side.objects))), single(want); !slices.Equal(got, want) {
					t.Errorf("on the %s cluster the %s of %s allows\n%q, and the part states\n%q", where, kind, account, got, want)
				}
			}
		}
	}
}

// boundTo returns the roles of a kind that bindings of that kind grant to a ServiceAccount. Roles that are not among the objects are chosen by an
// admin.
func boundTo(account, kind string, objects []*unstructured.Unstructured) (roles []*unstructured.Unstructured) {
	for _, binding := range objects {
		role, _, _ := unstructured.NestedStringMap(binding.Object, "roleRef")
		subjects, _, _ := unstructured.NestedSlice(binding.Object, "subjects")
		for _, subject := range subjects {
			for _, o := range objects {
				if binding.GetKind() == kind+"Binding" && subject.(map[string]any)["name"] == account && o.GetKind() == role["kind"] && o.GetName() == role["name"] {
					roles = append(roles, o)
				}
			}
		}
	}
	return roles
}
