// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

func TestPermissions_EachLabelSpellingAllows(t *testing.T) {
	for _, right := range []string{harness.SetLabel + ":mine", harness.SetLabel + ":*", "*"} {
		who := harness.User(t, harness.Rule("create", "managedclusters"), harness.LabelRight(right))
		name := harness.Unique("cluster")
		_, err := harness.Ours(t, harness.Hub(t).UserConfig(who)).ClusterV1().ManagedClusters().
			Create(t.Context(), harness.ManagedCluster(name, map[string]string{harness.SetLabel: "mine"}), metav1.CreateOptions{})
		if err != nil {
			t.Errorf("%s: %v", right, err)
		}
	}
}

func TestPermissions_JoinPermissionWarns(t *testing.T) {
	set := harness.Unique("set")
	who := harness.User(t, harness.Rule("create", "managedclusters"), harness.Rule("create", "managedclustersets/join", set))
	config, w := harness.Warned(harness.Hub(t).UserConfig(who))
	_, err := harness.Ours(t, config).ClusterV1().ManagedClusters().
		Create(t.Context(), harness.ManagedCluster(harness.Unique("cluster"), map[string]string{harness.SetLabel: set}), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !w.Has("managedclustersets/join", "deprecated", "managedclusters/label", harness.SetLabel+":"+set) {
		t.Errorf("no warning says what to use instead: %q", w.All)
	}
	// The right is limited to one label.
	_, err = harness.Ours(t, config).ClusterV1().ManagedClusters().
		Create(t.Context(), harness.ManagedCluster(harness.Unique("cluster"), map[string]string{harness.SetLabel: set, harness.InfoPrefix + "region": set}), metav1.CreateOptions{})
	harness.WantForbidden(t, err, harness.InfoPrefix+"region:"+set)
}

func TestPermissions_ErrorNamesRule(t *testing.T) {
	who := harness.User(t, harness.Rule("create", "managedclusters"))
	c := harness.ManagedCluster(harness.Unique("cluster"), map[string]string{harness.SetLabel: "mine"})
	c.Spec.HubAcceptsClient = true
	_, err := harness.Ours(t, harness.Hub(t).UserConfig(who)).ClusterV1().ManagedClusters().Create(t.Context(), c, metav1.CreateOptions{})
	harness.WantForbidden(t, err, `apiGroups: ["cluster.open-cluster-management.io"]`)
	if err == nil || !strings.Contains(err.Error(), `resourceNames: ["`+harness.SetLabel+`:mine"], verbs: ["create"]`) &&
		!strings.Contains(err.Error(), `resources: ["managedclusters/accept"]`) {
		t.Errorf("the refusal names no rule: %v", err)
	}
}

func TestPermissions_AgentMayLeaveAndNotRejoin(t *testing.T) {
	name, other := harness.Unique("leaver"), harness.Unique("other")
	accept := func(name string) {
		c := harness.NewManagedCluster(t, name, nil)
		c.Spec.HubAcceptsClient = true
		harness.Must(harness.Admin(t).ClusterV1().ManagedClusters().Update(t.Context(), c, metav1.UpdateOptions{}))(t)
	}
	accept(name)
	accept(other)
	agent := harness.User(t, harness.Rule("get,update,patch", "managedclusters"), harness.Rule("update", "managedclusters/leave", name))
	client := harness.Ours(t, harness.Hub(t).UserConfig(agent)).ClusterV1().ManagedClusters()
	patch := func(name, accepts string) error {
		_, err := client.Patch(t.Context(), name, types.MergePatchType, []byte(`{"spec":{"hubAcceptsClient":`+accepts+`}}`), metav1.PatchOptions{})
		return err
	}
	harness.WantForbidden(t, patch(other, "false"), "managedclusters/accept")
	if err := patch(name, "false"); err != nil {
		t.Fatalf("the agent cannot leave: %v", err)
	}
	harness.WantForbidden(t, patch(name, "true"), "managedclusters/accept")
	// Replacing the cluster by one that is created accepted is forbidden, too.
	c := harness.ManagedCluster(name, nil)
	c.Spec.HubAcceptsClient = true
	_, err := client.Create(t.Context(), c, metav1.CreateOptions{})
	harness.WantForbidden(t, err)
}

func TestPermissions_StatusWritesOnlyStatus(t *testing.T) {
	name := harness.Unique("cluster")
	before := harness.NewManagedCluster(t, name, map[string]string{"own": "1"})
	agent := harness.User(t, harness.Rule("get", "managedclusters"), harness.Rule("update,patch", "managedclusters/status"))
	client := harness.Ours(t, harness.Hub(t).UserConfig(agent)).ClusterV1().ManagedClusters()

	c := before.DeepCopy()
	c.Labels["own"], c.Labels["new"] = "2", "x"
	c.Annotations = map[string]string{"of-others": "x"}
	c.Finalizers = []string{"example.com/stay"}
	c.Spec.LeaseDurationSeconds = 5
	c.Spec.Taints = []clusterv1.Taint{{Key: "a", Effect: clusterv1.TaintEffectNoSelect}}
	c.Status.Version.Kubernetes = "v1.37.1"
	after := harness.Must(client.UpdateStatus(t.Context(), c, metav1.UpdateOptions{}))(t)
	if after.Status.Version.Kubernetes != "v1.37.1" {
		t.Errorf("the status was not written: %+v", after.Status)
	}
	if after.Labels["own"] != "1" || len(after.Labels) != len(before.Labels) || len(after.Annotations) != 0 || len(after.Finalizers) != 0 {
		t.Errorf("the metadata has changed: %+v", after.ObjectMeta)
	}
	if after.Spec.LeaseDurationSeconds != before.Spec.LeaseDurationSeconds || len(after.Spec.Taints) != 0 {
		t.Errorf("the spec has changed: %+v", after.Spec)
	}
	// A write to the main resource does not change the status.
	after.Status.Version.Kubernetes = "v0.0.0"
	after = harness.Must(harness.Admin(t).ClusterV1().ManagedClusters().Update(t.Context(), after, metav1.UpdateOptions{}))(t)
	if after.Status.Version.Kubernetes != "v1.37.1" {
		t.Errorf("an update has changed the status: %+v", after.Status)
	}
}
