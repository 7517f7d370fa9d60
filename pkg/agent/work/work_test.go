// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterhub/clusterhub/pkg/agent/work/worktest"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
)

func TestWork(t *testing.T) {
	w := newWorld(t)
	w.start(w.newAgent())
	w.put("a", w.spec(w.configMap("cm1", "{k: v}")))
	w.eventuallySaid("a", workv1.WorkApplied, "True: True")
	w.eventuallySaid("a", workv1.WorkAvailable, "True: True")
	if got := w.data("cm1"); got != "map[k:v]" {
		t.Errorf("the data are %s", got)
	}
	work := w.work("a")
	if meta := work.Status.ResourceStatus.Manifests[0].ResourceMeta; meta != (workv1.ManifestResourceMeta{
		Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespace: w.namespace, Name: "cm1"}) {
		t.Errorf("the manifest is %+v", meta)
	}

	t.Log("What leaves the spec goes, what comes is made")
	w.put("a", w.spec(w.configMap("cm2", "{k: v}"), w.configMap("cm3", "{}")))
	w.eventuallySaid("a", workv1.WorkApplied, "True: True True")
	w.eventually("the record", "cm2 cm3", func() string { return w.recorded("a") })
	if w.get(w.target("cm1")) != nil {
		t.Error("cm1 is still there")
	}

	t.Log("Nothing that is as wanted is written or asked for")
	w.eventuallyIdle()

	t.Log("Drift is repaired")
	w.change(w.target("cm2"), func(o *unstructured.Unstructured) { o.Object["data"] = map[string]any{"k": "other"} })
	w.eventually("the data", "map[k:v]", func() string { return w.data("cm2") })
	if err := w.client.Resource(configMaps).Namespace(w.namespace).Delete(t.Context(), "cm3", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	worktest.Eventually(t, "cm3 is back", func() bool { return w.get(w.target("cm3")) != nil })

	t.Log("A work without manifests has nothing that could be available")
	w.put("a", w.spec())
	w.eventuallySaid("a", workv1.WorkAvailable, "Unknown:")
	w.eventually("the record", "", func() string { return w.recorded("a") })

	t.Log("The end")
	w.put("a", w.spec(w.configMap("cm4", "{}")))
	w.eventuallySaid("a", workv1.WorkApplied, "True: True")
	w.delete("a")
	w.eventuallyGone("a")
	if w.record("a") != nil || w.get(w.target("cm4")) != nil {
		t.Error("something was left")
	}
}

// TestWork_FailsByManifest: a manifest that cannot be applied does not block the others.
func TestWork_FailsByManifest(t *testing.T) {
	w := newWorld(t)
	w.start(w.newAgent())
	kind := "K" + strings.ReplaceAll(w.namespace, "-", "")
	w.put("bad", w.spec(
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: cm1, namespace: does-not-exist}}",
		w.configMap("cm1", "{}"),
		"{apiVersion: example.com/v1, kind: "+kind+", metadata: {name: x, namespace: "+w.namespace+"}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: cm3}}",
		w.configMap("cm2", "{}"),
		"{apiVersion: v1, kind: Namespace, metadata: {name: agent}}",
		"{apiVersion: v1, kind: Secret, metadata: {name: hub-kubeconfig-secret, namespace: agent}}",
		"{apiVersion: work.open-cluster-management.io/v1, kind: AppliedManifestWork, metadata: {name: x}}",
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: 'clusterhub:hub-agent-works-rights', namespace: "+w.namespace+"}}",
	))
	w.eventuallySaid("bad", workv1.WorkApplied, "False: False True False False True False False False False")
	w.eventuallySaid("bad", workv1.WorkAvailable, "False: False True Unknown Unknown True Unknown Unknown Unknown Unknown")
	for ordinal, want := range map[int]string{
		0: `Failed to apply manifest: namespaces "does-not-exist" not found`,
		2: `Failed to apply manifest: the server doesn't have a resource type "` + kind + `"`,
		3: "Failed to apply manifest: the manifest needs metadata.namespace: a ConfigMap is in a namespace",
		5: "Failed to apply manifest: namespaces agent is the agent's own: no work may name it",
		6: "Failed to apply manifest: secrets agent/hub-kubeconfig-secret is the agent's own: no work may name it",
		7: "Failed to apply manifest: appliedmanifestworks.work.open-cluster-management.io x is the agent's own: no work may name it",
		8: "Failed to apply manifest: rolebindings.rbac.authorization.k8s.io " + w.namespace +
			"/clusterhub:hub-agent-works-rights is the agent's own: no work may name it",
	} {
		if got := w.message("bad", ordinal, workv1.ManifestApplied); got != want {
			t.Errorf("manifest %d says %q, want %q", ordinal, got, want)
		}
	}
	if got, want := w.message("bad", 2, workv1.ManifestAvailable), "Resource meta is incomplete"; got != want {
		t.Errorf("a manifest of an unknown kind says %q, want %q", got, want)
	}
	w.put("good", w.spec(w.configMap("cm3", "{}")))
	w.eventuallySaid("good", workv1.WorkApplied, "True: True")

	t.Log("Clean-up goes on, too, but not of what an unknown kind may be")
	w.put("bad", w.spec(w.configMap("cm1", "{}"), "{apiVersion: example.com/v1, kind: "+kind+", metadata: {name: x, namespace: "+w.namespace+"}}"))
	worktest.Eventually(t, "cm2 is gone", func() bool { return w.get(w.target("cm2")) == nil })

	t.Log("The kind comes to be known, and then goes with its object")
	w.put("crd", w.spec(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: `+strings.ToLower(kind)+`s.example.com, namespace: `+w.namespace+`}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: `+kind+`, plural: `+strings.ToLower(kind)+`s}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]`))
	w.eventuallySaid("crd", workv1.WorkApplied, "True: True")
	w.eventuallySaid("bad", workv1.WorkApplied, "True: True True")
	if meta := w.work("crd").Status.ResourceStatus.Manifests[0].ResourceMeta; meta.Namespace != "" {
		t.Errorf("what is in no namespace is said to be in %q", meta.Namespace)
	}
	w.delete("crd")
	w.eventuallyGone("crd")
	w.delete("bad")
	w.eventuallyGone("bad")
}

// TestWork_SameObjectInTwoVersions applies only the first manifest of an object: if both were applied, the object would change forever.
func TestWork_SameObjectInTwoVersions(t *testing.T) {
	w := newWorld(t)
	w.start(w.newAgent())
	scaler := func(version string, most int) string {
		return fmt.Sprintf("{apiVersion: autoscaling/%s, kind: HorizontalPodAutoscaler, metadata: {name: shop, namespace: %s}, "+
			"spec: {maxReplicas: %d, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: shop}}}", version, w.namespace, most)
	}
	w.put("a", w.spec(scaler("v1", 2), scaler("v2", 3)))
	w.eventuallySaid("a", workv1.WorkApplied, "False: True False")
	if got := w.message("a", 1, workv1.ManifestApplied); !strings.Contains(got, "the work has horizontalpodautoscalers.autoscaling "+w.namespace+"/shop twice") {
		t.Errorf("the second manifest says %q", got)
	}
	w.delete("a")
	w.eventuallyGone("a")
}

func TestWork_GenerationAndLabels(t *testing.T) {
	w := newWorld(t)
	w.start(w.newAgent())
	binding := func(role string) string {
		return "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: b, namespace: " + w.namespace +
			"}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: " + role + "}}"
	}
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"l": "v"}}, Spec: w.spec(binding("a"))}
	if _, err := w.works.Create(t.Context(), work, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.eventuallySaid("a", workv1.WorkApplied, "True: True")
	if got := w.record("a").GetLabels()["l"]; got != "v" {
		t.Errorf("the record has the label %q", got)
	}
	w.put("a", w.spec(binding("b")))
	w.eventuallySaid("a", workv1.WorkApplied, "False: False")
	w.eventuallySaid("a", workv1.WorkAvailable, "True: True")
}

// TestWork_ConflictingWorks: the second work reports the first, and the object is as the first desires.
func TestWork_ConflictingWorks(t *testing.T) {
	w := newWorld(t)
	w.start(w.newAgent())
	w.put("first", w.spec(w.configMap("cm", "{of: first}")))
	w.eventuallySaid("first", workv1.WorkApplied, "True: True")
	w.put("second", w.spec(w.configMap("cm", "{of: second}")))
	w.eventuallySaid("second", workv1.WorkApplied, "False: False")
	if got, want := w.message("second", 0, workv1.ManifestApplied), "ManifestWork first, which had it first"; !strings.Contains(got, want) {
		t.Errorf("it says %q", got)
	}
	w.put("first", w.spec(w.configMap("cm", "{of: again}")))
	w.eventually("the data", "map[of:again]", func() string { return w.data("cm") })
	if !strings.HasPrefix(w.said("second", workv1.WorkApplied), "False") {
		t.Error("the second work has its way")
	}
	w.put("second", w.spec(w.configMap("cm", "{of: again}")))
	w.eventuallySaid("second", workv1.WorkApplied, "True: True")
	uid := w.get(w.target("cm")).GetUID()
	w.delete("first")
	w.eventuallyGone("first")
	w.put("second", w.spec(w.configMap("cm", "{of: second}")))
	w.eventuallySaid("second", workv1.WorkApplied, "True: True")
	if left := w.get(w.target("cm")); left.GetUID() != uid || len(left.GetOwnerReferences()) != 1 {
		t.Errorf("the object of both is %v", left.Object["metadata"])
	}
}
