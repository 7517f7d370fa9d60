// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package sets

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// The examples of the specification of set overrides, with its own YAML in testdata. What differs: the role of the
// second example was indented so that it is no YAML; true is quoted, because a label is a string; the third writes
// "dev" and "qa" for the value in the sets, and "devset" and "qaset" in the rights: the latter here.

// grantRole binds the ClusterRole of a file of testdata to a user.
func grantRole(t *testing.T, file, who string) {
	t.Helper()
	data := harness.Must(os.ReadFile("testdata/" + file))(t)
	role := &rbacv1.ClusterRole{}
	if err := yaml.UnmarshalStrict(data, role); err != nil {
		t.Fatal(err)
	}
	harness.Grant(t, harness.Hub(t), harness.Unique(role.Name), who, role.Rules...)
}

func label(t *testing.T, who, name, label string) error {
	t.Helper()
	out, err := harness.Kubectl(t, "", "label", "managedcluster", name, label, "--overwrite", "--as", who)
	if err != nil && !strings.Contains(out, "Forbidden") && !strings.Contains(out, "forbidden") {
		t.Fatalf("kubectl label: %v: %s", err, out)
	}
	return err
}

func TestExample1_AgentsJoinSetOfRegion(t *testing.T) {
	tokyo, seoul := harness.Unique("tokyo"), harness.Unique("seoul")
	harness.NewManagedCluster(t, tokyo, nil)
	harness.NewManagedCluster(t, seoul, nil)
	agent := harness.User(t, harness.Rule("get,update,patch", "managedclusters", tokyo), harness.LabelRight(harness.InfoPrefix+"region:*"))
	harness.ApplyFile(t, "example1-set.yaml")

	if err := label(t, agent, tokyo, harness.InfoPrefix+"region=apac"); err != nil {
		t.Errorf("the agent cannot label its own cluster: %v", err)
	}
	if label(t, agent, seoul, harness.InfoPrefix+"region=apac") == nil {
		t.Error("the agent has labelled another cluster")
	}
	if label(t, agent, tokyo, harness.InfoPrefix+"cloud=Amazon") == nil {
		t.Error("the agent has set another label than the region")
	}
	harness.WantMembers(t, "", "apacset", tokyo)
	if err := label(t, agent, tokyo, harness.InfoPrefix+"region=emea"); err != nil {
		t.Errorf("the agent cannot correct its region: %v", err)
	}
	harness.WantMembers(t, "", "apacset")
}

func TestExample2_TeamBindsSetByLabel(t *testing.T) {
	with, without := harness.Unique("with"), harness.Unique("without")
	harness.NewManagedCluster(t, with, nil)
	harness.NewManagedCluster(t, without, nil)
	agent := harness.User(t, harness.Rule("get,update,patch", "managedclusters", with), harness.LabelRight(harness.InfoPrefix+"middlewareEnabled:true"))
	harness.ApplyFile(t, "example2-set.yaml")
	if err := label(t, agent, with, harness.InfoPrefix+"middlewareEnabled=true"); err != nil {
		t.Errorf("the agent cannot label its cluster: %v", err)
	}
	if label(t, agent, with, harness.InfoPrefix+"middlewareEnabled=maybe") == nil {
		t.Error("the agent has given the label another value than true")
	}
	namespace := harness.NewNamespace(t)
	dev := harness.User(t, harness.Rule("create,get", "managedclustersetbindings"))
	if got := harness.Members(t, dev, "middlewareenabledset"); len(got) != 0 {
		t.Errorf("a user who may not get the set sees %v", got)
	}
	grantRole(t, "example2-role.yaml", dev)
	harness.Eventually(t, "the team sees the set", func(context.Context) (bool, error) {
		return slices.Equal(harness.Members(t, dev, "middlewareenabledset"), []string{with}), nil
	})
	harness.MustKubectl(t, "", "get", "managedclusterset", "middlewareenabledset", "--as", dev)
	if out, err := harness.Kubectl(t, "", "get", "managedclustersets", "--as", dev); err == nil {
		t.Errorf("the team may list all sets: %s", out)
	}
	client := harness.Ours(t, harness.Hub(t).UserConfig(dev)).ClusterV1beta2().ManagedClusterSetBindings(namespace)
	harness.Must(client.Create(t.Context(), harness.Binding(namespace, "middlewareenabledset", "middlewareenabledset"), metav1.CreateOptions{}))(t)
	harness.MustKubectl(t, "", "wait", "--for=condition=Bound", "-n", namespace, "managedclustersetbinding/middlewareenabledset", "--timeout="+harness.Timeout.String())
	_, err := client.Create(t.Context(), harness.Binding(namespace, "global", "global"), metav1.CreateOptions{})
	harness.WantForbidden(t, err, "managedclustersets/bind", "global")
}

func TestExample3_SetPerTeam(t *testing.T) {
	harness.ApplyFile(t, "example3-sets.yaml")
	namespace := harness.NewNamespace(t)
	teams := map[string]string{}
	for _, set := range []string{"devset", "qaset"} {
		teams[set] = harness.User(t, harness.Rule("create,get,delete", "managedclustersetbindings"))
		grantRole(t, "example3-"+set+"-role.yaml", teams[set])
	}
	for set, who := range teams {
		other := map[string]string{"devset": "qaset", "qaset": "devset"}[set]
		client := harness.Ours(t, harness.Hub(t).UserConfig(who))
		create := func(name, set string) error {
			_, err := client.ClusterV1().ManagedClusters().Create(t.Context(), harness.ManagedCluster(name, map[string]string{harness.SetLabel: set}), metav1.CreateOptions{})
			t.Cleanup(func() {
				_ = harness.Admin(t).ClusterV1().ManagedClusters().Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{})
			})
			return err
		}
		own := harness.Unique(set)
		if err := create(own, set); err != nil {
			t.Errorf("%s: %v", set, err)
		}
		harness.WantForbidden(t, create(harness.Unique(set), other), harness.SetLabel+":"+other)
		// hub-apiserver observes roles by its own watch, after kube-apiserver, which accepted the cluster.
		harness.Eventually(t, "the team sees its cluster", func(context.Context) (bool, error) {
			return slices.Equal(harness.Members(t, who, set), []string{own}), nil
		})
		harness.WantMembers(t, who, other)
		bindings := client.ClusterV1beta2().ManagedClusterSetBindings(namespace)
		harness.Must(bindings.Create(t.Context(), harness.Binding(namespace, set, set), metav1.CreateOptions{}))(t)
		_, err := bindings.Create(t.Context(), harness.Binding(namespace, other, other), metav1.CreateOptions{})
		harness.WantForbidden(t, err, "managedclustersets/bind", other)
	}
}

// TestSeedPlan_MembersFollowLabelsAndSelectors runs the test plan of the specification: sets and labels are created, updated and deleted, and the
// selector changes.
func TestSeedPlan_MembersFollowLabelsAndSelectors(t *testing.T) {
	set, key := harness.Unique("plan"), harness.InfoPrefix+"plan"
	a, b := harness.Unique("a"), harness.Unique("b")
	harness.NewManagedCluster(t, a, map[string]string{key: "x"})
	harness.NewManagedCluster(t, b, map[string]string{key: "y", harness.SetLabel: set})
	sets := harness.Admin(t).ClusterV1beta1().ManagedClusterSets()
	harness.Must(sets.Create(t.Context(), harness.ExclusiveSet(set, key, "x"), metav1.CreateOptions{}))(t)
	selects := func(change func(*v1beta1.ManagedClusterSelector), members ...string) {
		t.Helper()
		if err := harness.ChangeSet(t, set, func(s *v1beta1.ManagedClusterSetSpec) { change(&s.ClusterSelector) }); err != nil {
			t.Fatal(err)
		}
		harness.WantMembers(t, "", set, members...)
	}
	harness.WantMembers(t, "", set, a)
	selects(func(s *v1beta1.ManagedClusterSelector) { s.ExclusiveLabel.Value = "y" }, b)
	selects(func(s *v1beta1.ManagedClusterSelector) {
		s.ExclusiveLabel, s.SelectorType = nil, "LabelSelector"
		s.LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{"x", "y"}},
		}}
	}, a, b)
	harness.MustKubectl(t, "", "label", "managedcluster", a, key+"-")
	harness.WantMembers(t, "", set, b)
	selects(func(s *v1beta1.ManagedClusterSelector) { s.LabelSelector = nil })
	selects(func(s *v1beta1.ManagedClusterSelector) { s.SelectorType = "" }, b)
	if err := sets.Delete(t.Context(), set, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.WantMembers(t, "", set)
}
