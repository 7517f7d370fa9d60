// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
)

// warnings keeps the Warning headers of a client's answers.
type warnings struct {
	mu  sync.Mutex
	all []string
}

func (w *warnings) HandleWarningHeader(_ int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, text)
}

func (w *warnings) has(parts ...string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, text := range w.all {
		found := true
		for _, part := range parts {
			found = found && strings.Contains(text, part)
		}
		if found {
			return true
		}
	}
	return false
}

func warned(config *rest.Config) (*rest.Config, *warnings) {
	w := &warnings{}
	config.WarningHandler = w
	return config, w
}

func TestPermissions_EachSpellingOfALabelAllows(t *testing.T) {
	for _, right := range []string{setLabel + ":mine", setLabel + ":*", "*"} {
		who := user(t, rule("create", "managedclusters"), labelRight(right))
		name := unique("cluster")
		_, err := ours(t, hub.UserConfig(who)).ClusterV1().ManagedClusters().
			Create(t.Context(), cluster(name, map[string]string{setLabel: "mine"}), metav1.CreateOptions{})
		if err != nil {
			t.Errorf("%s: %v", right, err)
		}
	}
}

func TestPermissions_JoinStillCountsAndWarns(t *testing.T) {
	set := unique("set")
	who := user(t, rule("create", "managedclusters"), rule("create", "managedclustersets/join", set))
	config, w := warned(hub.UserConfig(who))
	_, err := ours(t, config).ClusterV1().ManagedClusters().
		Create(t.Context(), cluster(unique("cluster"), map[string]string{setLabel: set}), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !w.has("managedclustersets/join", "deprecated", "managedclusters/label", setLabel+":"+set) {
		t.Errorf("no warning says what to use instead: %q", w.all)
	}
	// It is a right to one label only.
	_, err = ours(t, config).ClusterV1().ManagedClusters().
		Create(t.Context(), cluster(unique("cluster"), map[string]string{setLabel: set, infoPrefix + "region": set}), metav1.CreateOptions{})
	wantForbidden(t, err, infoPrefix+"region:"+set)
}

func TestPermissions_ARefusalNamesTheRule(t *testing.T) {
	who := user(t, rule("create", "managedclusters"))
	c := cluster(unique("cluster"), map[string]string{setLabel: "mine"})
	c.Spec.HubAcceptsClient = true
	_, err := ours(t, hub.UserConfig(who)).ClusterV1().ManagedClusters().Create(t.Context(), c, metav1.CreateOptions{})
	wantForbidden(t, err, `apiGroups: ["cluster.open-cluster-management.io"]`)
	if err == nil || !strings.Contains(err.Error(), `resourceNames: ["`+setLabel+`:mine"], verbs: ["create"]`) &&
		!strings.Contains(err.Error(), `resources: ["managedclusters/accept"]`) {
		t.Errorf("the refusal names no rule: %v", err)
	}
}

func TestPermissions_AnAgentMayLeaveAndNeverComeBack(t *testing.T) {
	name, other := unique("leaver"), unique("other")
	accept := func(name string) {
		c := newCluster(t, name, nil)
		c.Spec.HubAcceptsClient = true
		must(admin(t).ClusterV1().ManagedClusters().Update(t.Context(), c, metav1.UpdateOptions{}))(t)
	}
	accept(name)
	accept(other)
	agent := user(t, rule("get,update,patch", "managedclusters"), rule("update", "managedclusters/leave", name))
	client := ours(t, hub.UserConfig(agent)).ClusterV1().ManagedClusters()
	patch := func(name, accepts string) error {
		_, err := client.Patch(t.Context(), name, types.MergePatchType, []byte(`{"spec":{"hubAcceptsClient":`+accepts+`}}`), metav1.PatchOptions{})
		return err
	}
	wantForbidden(t, patch(other, "false"), "managedclusters/accept")
	if err := patch(name, "false"); err != nil {
		t.Fatalf("the agent cannot leave: %v", err)
	}
	wantForbidden(t, patch(name, "true"), "managedclusters/accept")
	// Nor by replacing the cluster with one that is born accepted.
	c := cluster(name, nil)
	c.Spec.HubAcceptsClient = true
	_, err := client.Create(t.Context(), c, metav1.CreateOptions{})
	wantForbidden(t, err)
}

func TestPermissions_StatusChangesStatusOnly(t *testing.T) {
	name := unique("cluster")
	before := newCluster(t, name, map[string]string{"own": "1"})
	agent := user(t, rule("get", "managedclusters"), rule("update,patch", "managedclusters/status"))
	client := ours(t, hub.UserConfig(agent)).ClusterV1().ManagedClusters()

	c := before.DeepCopy()
	c.Labels["own"], c.Labels["new"] = "2", "x"
	c.Annotations = map[string]string{"of-others": "x"}
	c.Finalizers = []string{"example.com/stay"}
	c.Spec.LeaseDurationSeconds = 5
	c.Spec.Taints = []clusterv1.Taint{{Key: "a", Effect: clusterv1.TaintEffectNoSelect}}
	c.Status.Version.Kubernetes = "v1.37.1"
	after := must(client.UpdateStatus(t.Context(), c, metav1.UpdateOptions{}))(t)
	if after.Status.Version.Kubernetes != "v1.37.1" {
		t.Errorf("the status was not written: %+v", after.Status)
	}
	if after.Labels["own"] != "1" || len(after.Labels) != len(before.Labels) || len(after.Annotations) != 0 || len(after.Finalizers) != 0 {
		t.Errorf("the metadata has changed: %+v", after.ObjectMeta)
	}
	if after.Spec.LeaseDurationSeconds != before.Spec.LeaseDurationSeconds || len(after.Spec.Taints) != 0 {
		t.Errorf("the spec has changed: %+v", after.Spec)
	}
	// And writing the main resource does not change the status.
	after.Status.Version.Kubernetes = "v0.0.0"
	after = must(admin(t).ClusterV1().ManagedClusters().Update(t.Context(), after, metav1.UpdateOptions{}))(t)
	if after.Status.Version.Kubernetes != "v1.37.1" {
		t.Errorf("an update has changed the status: %+v", after.Status)
	}
}

func newNamespace(t *testing.T) string {
	t.Helper()
	name := unique("ns")
	client := kube(t, hub.AdminConfig()).CoreV1().Namespaces()
	must(client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}))(t)
	t.Cleanup(func() { _ = client.Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}) })
	return name
}

func binding(namespace, name, set string) *v1beta2.ManagedClusterSetBinding {
	return &v1beta2.ManagedClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1beta2.ManagedClusterSetBindingSpec{ClusterSet: set},
	}
}
