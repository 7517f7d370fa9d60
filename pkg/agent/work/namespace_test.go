// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
	"github.com/clusterhub/clusterhub/pkg/agent/work/executor"
	"github.com/clusterhub/clusterhub/pkg/agent/work/worktest"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
)

// inEachHome runs a test for agents that store records in AppliedManifestWorks, and in ConfigMaps of their namespace.
func inEachHome(t *testing.T, test func(*world)) {
	for home, in := range map[string]func(*testing.T) *world{"cluster": newWorld, "namespace": newNamespaceWorld} {
		t.Run(home, func(t *testing.T) { test(in(t)) })
	}
}

// newNamespaceWorld returns a world whose agents are admins of one namespace, and have no rights outside of it. They also run in it.
func newNamespaceWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	return newSerialNamespaceWorld(t)
}

func newSerialNamespaceWorld(t *testing.T) *world {
	t.Helper()
	w := newSerialWorld(t)
	w.only, w.user = w.namespace, "agent-of-"+w.namespace
	w.own = Own{Namespace: w.namespace}
	kube := kubernetes.NewForConfigOrDie(worktest.Config(t))
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "agent"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: w.user}}}
	if _, err := kube.RbacV1().RoleBindings(w.namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return w
}

// TestNamespace: an agent with rights in one namespace does in it everything that other agents do.
func TestNamespace(t *testing.T) {
	w := newNamespaceWorld(t)
	stop := w.start(w.newAgent())
	w.put("a", w.spec(w.configMap("cm1", "{k: v}"), w.configMap("cm2", "{}")))
	w.eventuallySaid("a", workv1.WorkApplied, "True: True True")
	w.eventually("the record", "cm1 cm2", func() string { return w.recorded("a") })
	if have := w.get(w.target("cm1")); have.GetOwnerReferences()[0].UID != w.record("a").GetUID() || len(w.record("a").GetFinalizers()) > 0 {
		t.Errorf("it belongs to %v", have.GetOwnerReferences())
	}

	t.Log("Drift is repaired, and what leaves the spec goes")
	w.change(w.target("cm1"), func(o *unstructured.Unstructured) { o.Object["data"] = map[string]any{"k": "other"} })
	w.eventually("the data", "map[k:v]", func() string { return w.data("cm1") })
	w.put("a", w.spec(w.configMap("cm1", "{k: v}")))
	w.eventually("the record", "cm1", func() string { return w.recorded("a") })
	if w.get(w.target("cm2")) != nil {
		t.Error("cm2 is still there")
	}

	t.Log("What is elsewhere, or the agent's, is told before anything is written")
	elsewhere := " is not in the namespace " + w.namespace + ", which is the only one in which the agent applies objects"
	refused := map[string]string{
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: default}}": "configmaps default/x" + elsewhere,
		"{apiVersion: v1, kind: Namespace, metadata: {name: x}}":                     "namespaces x" + elsewhere,
	}
	for kind, name := range map[string]string{"Secret": "hub-kubeconfig-secret", "ServiceAccount": "klusterlet-registration-sa", "ConfigMap": w.recordTarget("a").Name} {
		refused["{apiVersion: v1, kind: "+kind+", metadata: {name: "+name+", namespace: "+w.namespace+"}}"] =
			strings.ToLower(kind) + "s " + w.namespace + "/" + name + " is the agent's own: no work may name it"
	}
	for manifest, why := range refused {
		w.put("b", w.spec(manifest, w.configMap("cm3", "{}")))
		w.eventuallySaid("b", workv1.WorkApplied, "False: False True")
		w.eventually("the message", "Failed to apply manifest: "+why, func() string { return w.message("b", 0, workv1.ManifestApplied) })
	}

	t.Log("The second of two works that want one object is told of the first")
	w.put("c", w.spec(w.configMap("cm1", "{k: w}")))
	w.eventuallySaid("c", workv1.WorkApplied, "False: False")
	if got := w.message("c", 0, workv1.ManifestApplied); !strings.Contains(got, "ManifestWork a, which had it first") {
		t.Errorf("it says %q", got)
	}
	w.delete("c")
	w.eventuallyGone("c")

	t.Log("The end")
	w.delete("a")
	w.eventuallyGone("a")
	if w.record("a") != nil || w.get(w.target("cm1")) != nil {
		t.Error("something was left")
	}

	t.Log("Without the agent, nothing keeps the namespace")
	stop()
	namespaces := w.client.Resource(corev1.SchemeGroupVersion.WithResource("namespaces"))
	if err := namespaces.Delete(t.Context(), w.namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	worktest.Eventually(t, "the namespace is gone", func() bool {
		_, err := namespaces.Get(context.WithoutCancel(t.Context()), w.namespace, metav1.GetOptions{})
		return apply.IsGone(err)
	})
}

// TestNamespace_Executor: the agent only checks rights in its namespace.
func TestNamespace_Executor(t *testing.T) {
	w := newNamespaceWorld(t)
	w.start(w.newAgent())
	w.allow(rule("", "configmaps", "cm1", all...))
	w.put("a", w.by(w.spec(w.configMap("cm1", "{}"), w.configMap("cm2", "{}"))))
	w.eventuallySaid("a", workv1.WorkApplied, "False: True False")
	config := worktest.Config(t)
	executors, err := executor.New(config, w.namespace)
	if err != nil {
		t.Fatal(err)
	}
	// As an admin of the cluster it may check others; it only checks those in its namespace.
	elsewhere := apply.Manifest{Target: apply.Target{GroupVersionResource: configMaps, Namespace: "default", Name: "x"}}
	account := &workv1.ManifestWorkSubjectServiceAccount{Namespace: "kube-system", Name: "namespace-controller"}
	if _, err := executors.For(t.Context(), account, executor.Access{Manifest: elsewhere, Delete: true}); err == nil || !strings.HasPrefix(err.Error(), "not allowed to apply") {
		t.Errorf("it may: %v", err)
	}
}
