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

// bind gives the user of the agents a role: in a namespace, or in all if that is empty.
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

// TestAgent_OfOneNamespace has the rights that `kubectl hub join --works=admin --works-namespaces=…` gives. It says what it may not, without
// asking again and again, and what it may is as with all rights.
func TestAgent_OfOneNamespace(t *testing.T) {
	w := newWorld(t)
	w.user = "agent-of-" + w.namespace
	w.make(worktest.Parse(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: `+w.user+`}
rules:
- {apiGroups: [work.open-cluster-management.io], resources: ["*"], verbs: ["*"]}
- {apiGroups: [authorization.k8s.io], resources: [subjectaccessreviews], verbs: [create]}`), "clusterroles", "")
	w.bind(w.user, "")
	w.bind("admin", w.namespace)
	w.start(w.newAgent())

	w.put("w", w.spec(w.configMap("cm", "{k: v}"),
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: "+w.namespace+", namespace: default}}",
		"{apiVersion: v1, kind: Namespace, metadata: {name: "+w.namespace+"-more}}",
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "+w.namespace+"}}"))
	w.eventuallySaid("w", workv1.WorkApplied, "False: True False False False")
	for ordinal, resource := range map[int]string{1: "configmaps", 2: "namespaces", 3: "clusterroles"} {
		want := fmt.Sprintf(`Failed to apply manifest: %s`, resource)
		if got := w.message("w", ordinal, workv1.ManifestApplied); !strings.HasPrefix(got, want) || !strings.Contains(got, `forbidden: User "`+w.user+`" cannot get`) {
			t.Errorf("manifest %d says %q", ordinal, got)
		}
	}
	// What fails is tried less and less often, and no watch is begun anew without end.
	w.eventuallyIdle()

	t.Log("Drift is repaired when it happens, and the end is as with all rights")
	w.change(w.target("cm"), func(have *unstructured.Unstructured) { have.Object["data"] = map[string]any{"k": "drift"} })
	w.eventually("cm", "map[k:v]", func() string { return w.data("cm") })
	w.put("w", w.spec(w.configMap("cm", "{k: v}"), "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+w.namespace+", namespace: default}}"))
	w.eventually("w's record", "cm "+w.namespace+"*", func() string { return w.recorded("w") })
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

	t.Log("What was made is waited for when the right to it is gone")
	w.put("lost", w.spec(w.configMap("lost", "{}")))
	w.eventuallySaid("lost", workv1.WorkApplied, "True: True")
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
		return deleting != nil && strings.Contains(deleting.Message, "taking away configmaps "+w.namespace+"/lost") && strings.Contains(deleting.Message, "forbidden")
	})
	w.bind("admin", w.namespace)
	w.eventuallyGone("lost")
}

// agentsClient has the rights of the agents.
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
