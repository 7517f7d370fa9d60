// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
	"github.com/clusterhub/clusterhub/pkg/agent/work/worktest"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
)

// bind grants a role to the user of the agents: in a namespace, or in all if that is empty.
func (w *world) bind(role, namespace string) {
	w.Helper()
	kind, resource := "ClusterRoleBinding", "clusterrolebindings"
	if namespace != "" {
		kind, resource = "RoleBinding", "rolebindings"
	}
	binding := worktest.Parse(fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: %s
metadata: {name: "%s-%s"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "%s"}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: "%s"}]`, kind, w.cluster, role, role, w.user))
	w.make(binding, resource, namespace)
}

func (w *world) make(object *unstructured.Unstructured, resource, namespace string) {
	w.Helper()
	_, err := w.client.Resource(rbacv1.SchemeGroupVersion.WithResource(resource)).Namespace(namespace).Create(w.Context(), object, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
}

// limited gives the agents the rights that agents have independently of works: to write records, to check rights, and to label namespaces.
func (w *world) limited() {
	w.Helper()
	w.user = "agent-of-" + w.namespace
	w.make(worktest.Parse(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: `+w.user+`}
rules:
- {apiGroups: [work.open-cluster-management.io], resources: ["*"], verbs: ["*"]}
- {apiGroups: [authorization.k8s.io], resources: [subjectaccessreviews], verbs: [create]}
- {apiGroups: [""], resources: [namespaces], resourceNames: [kube-system], verbs: [get]}
- {apiGroups: [""], resources: [namespaces], verbs: [list, create, patch]}`), "clusterroles", "")
	w.bind(w.user, "")
}

// TestAgent_OfOneNamespace has the rights that `kubectl hub join --works=admin --works-namespaces=…` gives, beside those of the agent itself. It
// reports what it may not do, without retrying all the time, and does what it may as with all rights.
func TestAgent_OfOneNamespace(t *testing.T) {
	w := newWorld(t)
	w.limited()
	w.bind("admin", w.namespace)
	w.start(w.newAgent())

	w.put("w", w.spec(w.configMap("cm", "{k: v}"),
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: "+w.namespace+", namespace: default}}",
		"{apiVersion: v1, kind: Namespace, metadata: {name: "+w.namespace+"-more}}",
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "+w.namespace+"}}"))
	w.eventuallySaid("w", workv1.WorkApplied, "False: True False False False")
	cannot := `forbidden: User "` + w.user + `" cannot get`
	for ordinal, want := range map[int][]string{1: {"configmaps", cannot}, 2: {"namespaces", withoutNamespaces}, 3: {"clusterroles", cannot}} {
		if got := w.message("w", ordinal, workv1.ManifestApplied); !strings.HasPrefix(got, "Failed to apply manifest: "+want[0]) || !strings.Contains(got, want[1]) {
			t.Errorf("manifest %d says %q", ordinal, got)
		}
	}
	// Failed operations are retried at growing intervals, and no watch is restarted in a loop.
	w.eventuallyIdle()

	t.Log("Drift is repaired when it happens, and the end is as with all rights")
	w.change(w.target("cm"), func(have *unstructured.Unstructured) { have.Object["data"] = map[string]any{"k": "drift"} })
	w.eventually("cm", "map[k:v]", func() string { return w.data("cm") })
	w.put("w", w.spec(w.configMap("cm", "{k: v}"), "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+w.namespace+", namespace: default}}"))
	w.eventually("w's record", w.namespace+"* cm", func() string { return w.recorded("w") })
	w.delete("w")
	w.eventuallyGone("w")
	if got := w.data("cm"); got != "<none>" {
		t.Errorf("the work has left %s", got)
	}

	t.Log("With all to stay, too")
	spec := w.spec(w.configMap("cm", "{k: v}"), "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+w.namespace+", namespace: default}}")
	spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeOrphan}
	w.put("orphaned", spec)
	w.eventuallySaid("orphaned", workv1.WorkApplied, "False: True False")
	w.delete("orphaned")
	w.eventuallyGone("orphaned")
	if got := w.data("cm"); got != "map[k:v]" {
		t.Errorf("of what is to stay there is %s", got)
	}

	t.Log("What was made is waited for when the right to it is gone, also if it is to stay")
	w.put("lost", w.spec(w.configMap("lost", "{}")))
	w.eventuallySaid("lost", workv1.WorkApplied, "True: True")
	w.put("orphaned", spec)
	w.eventuallySaid("orphaned", workv1.WorkApplied, "False: True False")
	bindings := w.client.Resource(rbacv1.SchemeGroupVersion.WithResource("rolebindings")).Namespace(w.namespace)
	if err := bindings.Delete(t.Context(), w.cluster+"-admin", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	worktest.Eventually(t, "the agent may not look", func() bool {
		_, err := apply.Get(t.Context(), w.agentsClient(), w.target("lost"))
		return apierrors.IsForbidden(err)
	})
	w.delete("lost")
	worktest.Eventually(t, "the work says what it waits for", func() bool {
		work := w.work("lost")
		if work == nil {
			t.Fatal("the work has ended, and what it has made is there")
		}
		deleting := meta.FindStatusCondition(work.Status.Conditions, workv1.WorkDeleting)
		return deleting != nil && strings.Contains(deleting.Message, "deleting configmaps "+w.namespace+"/lost") && strings.Contains(deleting.Message, "forbidden")
	})
	w.delete("orphaned")
	worktest.Eventually(t, "the other one says it, too", func() bool {
		got := w.deleting("orphaned")
		return strings.Contains(got, "orphaning configmaps "+w.namespace+"/cm") && strings.Contains(got, "forbidden")
	})
	w.bind("admin", w.namespace)
	w.eventuallyGone("lost")
	w.eventuallyGone("orphaned")
}

// withoutNamespaces is in the message about a namespace that works may not have.
const withoutNamespaces = "works that have a namespace need the right to update and delete it, in the whole cluster"

// TestAgent_OfOneNamespaceHasNoNamespaces: with a list of namespaces, works may not write the namespaces themselves, though the agent may for its
// labels: the labels of a namespace determine which pods may run there.
func TestAgent_OfOneNamespaceHasNoNamespaces(t *testing.T) {
	for _, role := range []string{"admin", "cluster-admin"} {
		t.Run(role, func(t *testing.T) { hasNoNamespaces(newWorld(t), role) })
	}
}

func hasNoNamespaces(w *world, role string) {
	w.limited()
	w.bind(role, w.namespace)
	own := apply.Target{GroupVersionResource: namespaces, Name: w.namespace}
	w.change(own, func(o *unstructured.Unstructured) {
		o.SetLabels(map[string]string{"pod-security.kubernetes.io/enforce": "restricted"})
	})
	w.start(w.newAgent())
	label := "example.com/" + w.namespace
	for _, strategy := range []workv1.UpdateStrategyType{
		workv1.UpdateStrategyTypeServerSideApply, workv1.UpdateStrategyTypeCreateOnly, workv1.UpdateStrategyTypeUpdate} {
		var manifests []string
		names := []string{w.namespace, "kube-system", "default", w.namespace + "-more"}
		for _, name := range names {
			manifests = append(manifests, "{apiVersion: v1, kind: Namespace, metadata: {name: "+name+", labels: {"+label+": a, pod-security.kubernetes.io/enforce: privileged}}}")
		}
		spec := w.spec(manifests...)
		for _, name := range names {
			spec = strategyOf(spec, apply.Target{GroupVersionResource: namespaces, Name: name}, strategy)
		}
		work := "w" + strings.ToLower(string(strategy))
		w.put(work, spec)
		w.eventuallySaid(work, workv1.WorkApplied, "False: False False False False")
		// Namespaces that the agent may not delete are never the work's to delete.
		for i, want := range []string{withoutNamespaces, "need the right to update it", "need the right to update it", withoutNamespaces} {
			if got := w.message(work, i, workv1.ManifestApplied); !strings.Contains(got, want) {
				w.Errorf("%s: %s says %q, want %q", strategy, names[i], got, want)
			}
		}
		for _, name := range names {
			have := w.get(apply.Target{GroupVersionResource: namespaces, Name: name})
			if name == w.namespace+"-more" {
				if have != nil {
					w.Errorf("%s: a work has made a namespace", strategy)
				}
				continue
			}
			if have.GetLabels()[label] != "" || belongs(have, w.record(work).GetUID()) {
				w.Errorf("%s: a work has written to namespace %s: %v", strategy, name, have.Object["metadata"])
			}
		}
		if got := w.get(own).GetLabels()["pod-security.kubernetes.io/enforce"]; got != "restricted" {
			w.Errorf("%s: the pods of the namespace are bounded by %q", strategy, got)
		}
		w.delete(work)
		w.eventuallyGone(work)
	}
	if have := w.get(own); have == nil || have.GetDeletionTimestamp() != nil {
		w.Error("the namespace was deleted")
	}
}

// agentsClient returns a client with the rights of the agents.
func (w *world) agentsClient() dynamic.Interface {
	w.Helper()
	config := worktest.Config(w.T)
	config.Impersonate.UserName = w.user
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		w.Fatal(err)
	}
	return client
}
