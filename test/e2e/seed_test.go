// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// The examples of the specification of set overrides, with its own YAML in testdata. What differs: the role of the
// second example was indented so that it is no YAML; true is quoted, because a label is a string; the third writes
// "dev" and "qa" for the value in the sets, and "devset" and "qaset" in the rights: the latter here.

// members are the clusters that a user sees in a set.
func members(t *testing.T, who, set string) []string {
	t.Helper()
	config := hub.AdminConfig()
	if who != "" {
		config = hub.UserConfig(who)
	}
	list, err := ours(t, config).ViewV1alpha1().ClusterSetMembers().
		List(t.Context(), metav1.ListOptions{FieldSelector: "spec.clusterSet=" + set})
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, m := range list.Items {
		names = append(names, m.Spec.Cluster)
	}
	return names
}

func wantMembers(t *testing.T, who, set string, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := members(t, who, set); !slices.Equal(got, want) {
		t.Errorf("%s sees %v in %s, want %v", who, got, set, want)
	}
}

// apply applies a file of testdata as admin, and deletes what is in it at the end.
func apply(t *testing.T, file string) {
	t.Helper()
	mustKubectl(t, "", "apply", "-f", "testdata/"+file)
	t.Cleanup(func() {
		_ = hub.Kubectl(context.WithoutCancel(t.Context()), "delete", "--ignore-not-found", "-f", "testdata/"+file).Run()
	})
}

// grantRole binds the cluster role of a file of testdata to a user.
func grantRole(t *testing.T, file, who string) {
	t.Helper()
	data := must(os.ReadFile("testdata/" + file))(t)
	role := &rbacv1.ClusterRole{}
	if err := yaml.UnmarshalStrict(data, role); err != nil {
		t.Fatal(err)
	}
	grant(t, hub, unique(role.Name), who, role.Rules...)
}

func label(t *testing.T, who, name, label string) error {
	t.Helper()
	out, err := kubectl(t, "", "label", "managedcluster", name, label, "--overwrite", "--as", who)
	if err != nil && !strings.Contains(out, "Forbidden") && !strings.Contains(out, "forbidden") {
		t.Fatalf("kubectl label: %v: %s", err, out)
	}
	return err
}

func TestExample1_AgentsPutTheirClustersIntoTheSetOfARegion(t *testing.T) {
	tokyo, seoul := unique("tokyo"), unique("seoul")
	newCluster(t, tokyo, nil)
	newCluster(t, seoul, nil)
	agent := user(t, rule("get,update,patch", "managedclusters", tokyo), labelRight(infoPrefix+"region:*"))
	apply(t, "example1-set.yaml")

	if err := label(t, agent, tokyo, infoPrefix+"region=apac"); err != nil {
		t.Errorf("the agent cannot label its own cluster: %v", err)
	}
	if label(t, agent, seoul, infoPrefix+"region=apac") == nil {
		t.Error("the agent has labelled another cluster")
	}
	if label(t, agent, tokyo, infoPrefix+"cloud=Amazon") == nil {
		t.Error("the agent has set another label than the region")
	}
	wantMembers(t, "", "apacset", tokyo)
	if err := label(t, agent, tokyo, infoPrefix+"region=emea"); err != nil {
		t.Errorf("the agent cannot correct its region: %v", err)
	}
	wantMembers(t, "", "apacset")
}

func TestExample2_ATeamBindsTheSetOfClustersWithTheMiddleware(t *testing.T) {
	with, without := unique("with"), unique("without")
	newCluster(t, with, nil)
	newCluster(t, without, nil)
	agent := user(t, rule("get,update,patch", "managedclusters", with), labelRight(infoPrefix+"middlewareEnabled:true"))
	apply(t, "example2-set.yaml")
	if err := label(t, agent, with, infoPrefix+"middlewareEnabled=true"); err != nil {
		t.Errorf("the agent cannot label its cluster: %v", err)
	}
	if label(t, agent, with, infoPrefix+"middlewareEnabled=maybe") == nil {
		t.Error("the agent has given the label another value than true")
	}
	namespace := newNamespace(t)
	dev := user(t, rule("create,get", "managedclustersetbindings"))
	if got := members(t, dev, "middlewareenabledset"); len(got) != 0 {
		t.Errorf("a user who may not get the set sees %v", got)
	}
	grantRole(t, "example2-role.yaml", dev)
	eventually(t, "the team sees the set", func(context.Context) (bool, error) {
		return slices.Equal(members(t, dev, "middlewareenabledset"), []string{with}), nil
	})
	mustKubectl(t, "", "get", "managedclusterset", "middlewareenabledset", "--as", dev)
	if out, err := kubectl(t, "", "get", "managedclustersets", "--as", dev); err == nil {
		t.Errorf("the team may list all sets: %s", out)
	}
	client := ours(t, hub.UserConfig(dev)).ClusterV1beta2().ManagedClusterSetBindings(namespace)
	must(client.Create(t.Context(), binding(namespace, "middlewareenabledset", "middlewareenabledset"), metav1.CreateOptions{}))(t)
	mustKubectl(t, "", "wait", "--for=condition=Bound", "-n", namespace, "managedclustersetbinding/middlewareenabledset", "--timeout=30s")
	_, err := client.Create(t.Context(), binding(namespace, "global", "global"), metav1.CreateOptions{})
	wantForbidden(t, err, "managedclustersets/bind", "global")
}

func TestExample3_EachTeamHasItsOwnSet(t *testing.T) {
	apply(t, "example3-sets.yaml")
	namespace := newNamespace(t)
	teams := map[string]string{}
	for _, set := range []string{"devset", "qaset"} {
		teams[set] = user(t, rule("create,get,delete", "managedclustersetbindings"))
		grantRole(t, "example3-"+set+"-role.yaml", teams[set])
	}
	for set, who := range teams {
		other := map[string]string{"devset": "qaset", "qaset": "devset"}[set]
		client := ours(t, hub.UserConfig(who))
		create := func(name, set string) error {
			_, err := client.ClusterV1().ManagedClusters().Create(t.Context(), cluster(name, map[string]string{setLabel: set}), metav1.CreateOptions{})
			t.Cleanup(func() {
				_ = admin(t).ClusterV1().ManagedClusters().Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{})
			})
			return err
		}
		own := unique(set)
		if err := create(own, set); err != nil {
			t.Errorf("%s: %v", set, err)
		}
		wantForbidden(t, create(unique(set), other), setLabel+":"+other)
		wantMembers(t, who, set, own)
		wantMembers(t, who, other)
		bindings := client.ClusterV1beta2().ManagedClusterSetBindings(namespace)
		must(bindings.Create(t.Context(), binding(namespace, set, set), metav1.CreateOptions{}))(t)
		_, err := bindings.Create(t.Context(), binding(namespace, other, other), metav1.CreateOptions{})
		wantForbidden(t, err, "managedclustersets/bind", other)
	}
}

// The test plan of the specification: sets and labels are created, updated and deleted, and the selector changes.
func TestSeedPlan_MembersFollowLabelsAndSelectors(t *testing.T) {
	set, key := unique("plan"), infoPrefix+"plan"
	a, b := unique("a"), unique("b")
	newCluster(t, a, map[string]string{key: "x"})
	newCluster(t, b, map[string]string{key: "y", setLabel: set})
	sets := admin(t).ClusterV1beta1().ManagedClusterSets()
	s := must(sets.Create(t.Context(), exclusiveSet(set, key, "x"), metav1.CreateOptions{}))(t)
	wantMembers(t, "", set, a)
	s.Spec.ClusterSelector.ExclusiveLabel.Value = "y"
	s = must(sets.Update(t.Context(), s, metav1.UpdateOptions{}))(t)
	wantMembers(t, "", set, b)
	s.Spec.ClusterSelector.ExclusiveLabel = nil
	s.Spec.ClusterSelector.SelectorType = "LabelSelector"
	s.Spec.ClusterSelector.LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{"x", "y"}},
	}}
	s = must(sets.Update(t.Context(), s, metav1.UpdateOptions{}))(t)
	wantMembers(t, "", set, a, b)
	mustKubectl(t, "", "label", "managedcluster", a, key+"-")
	wantMembers(t, "", set, b)
	s.Spec.ClusterSelector.LabelSelector = nil
	s = must(sets.Update(t.Context(), s, metav1.UpdateOptions{}))(t)
	wantMembers(t, "", set)
	s.Spec.ClusterSelector.SelectorType = ""
	must(sets.Update(t.Context(), s, metav1.UpdateOptions{}))(t)
	wantMembers(t, "", set, b)
	if err := sets.Delete(t.Context(), set, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	wantMembers(t, "", set)
}
