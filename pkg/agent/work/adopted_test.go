// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
	"github.com/clusterhub/clusterhub/pkg/agent/work/worktest"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/test/await"
)

// TestAdopted verifies that a condition reports an object that existed before, also after a restart of the agent, and until the work has created it
// again. An object that must not be adopted is not adopted by a retry either, and stays when the work is deleted.
func TestAdopted(t *testing.T) {
	w := newWorld(t)
	create := func(name string) {
		t.Helper()
		if _, err := w.client.Resource(configMaps).Namespace(w.namespace).Create(t.Context(), worktest.Parse(w.configMap(name, "{k: old}")), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	create("before")
	create("foreign")
	space := apply.Target{GroupVersionResource: corev1.SchemeGroupVersion.WithResource("namespaces"), Name: w.namespace}
	spec := w.withConfig(w.spec(w.configMap("before", "{k: v}"), w.configMap("new", "{k: v}"), w.configMap("foreign", "{k: v}"),
		"{apiVersion: v1, kind: Namespace, metadata: {name: "+w.namespace+", labels: {team: a}}}"),
		"foreign", workv1.ManifestConfigOption{Adoption: workv1.AdoptNever})
	stop := w.start(w.newAgent())
	w.put("a", spec)
	w.eventuallySaid("a", workv1.WorkApplied, "False: True True False True")
	adopted := func() string {
		text := ""
		for i := range spec.Workload.Manifests {
			_, what, _ := strings.Cut(w.message("a", i, workv1.ManifestAdopted), "applied. It ")
			text += what + ";"
		}
		return text
	}
	const want = "is deleted with the work;;;stays when the work is deleted;"
	w.eventually("what was adopted", want, adopted)
	if got := w.message("a", 2, workv1.ManifestApplied); !strings.Contains(got, "foreign exists, and does not belong to this work, whose adoption is Never") {
		t.Errorf("it says %q", got)
	}

	t.Log("After a restart, and with a retry")
	stop()
	w.start(w.newAgent())
	spec.Workload.Manifests[1] = w.spec(w.configMap("new", "{k: w}")).Workload.Manifests[0]
	w.put("a", spec)
	w.eventually("the data", "map[k:w]", func() string { return w.data("new") })
	w.eventuallySaid("a", workv1.WorkApplied, "False: True True False True")
	w.eventually("what was adopted", want, adopted)
	if got := w.data("foreign"); got != "map[k:old]" {
		t.Errorf("the object that must not be adopted has become %s", got)
	}
	w.eventually("the record", "before foreign* new "+w.namespace+"*", func() string { return w.recorded("a") })

	t.Log("Created again, it is the work's own")
	if err := w.client.Resource(configMaps).Namespace(w.namespace).Delete(t.Context(), "before", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.eventually("the data", "map[k:v]", func() string { return w.data("before") })
	w.eventually("what was adopted", ";;;stays when the work is deleted;", adopted)

	t.Log("The end")
	w.delete("a")
	w.eventuallyGone("a")
	if w.data("before") != "<none>" || w.data("new") != "<none>" || w.data("foreign") != "map[k:old]" || w.get(space).GetDeletionTimestamp() != nil {
		t.Errorf("left are before %s, new %s, foreign %s, and the namespace %v", w.data("before"), w.data("new"), w.data("foreign"), w.get(space).Object["metadata"])
	}
}

// TestWork_NamespaceMissing: a manifest that lacks its namespace is applied as soon as the namespace exists, not after a backoff of minutes.
func TestWork_NamespaceMissing(t *testing.T) {
	w := newWorld(t)
	a := w.newAgent()
	a.firstRetry = 3 * await.Limit
	w.start(a)
	name := "late-" + w.namespace
	w.put("a", w.spec("{apiVersion: v1, kind: ConfigMap, metadata: {name: cm, namespace: "+name+"}, data: {k: v}}"))
	w.eventuallySaid("a", workv1.WorkApplied, "False: False")
	namespace := worktest.Parse("{apiVersion: v1, kind: Namespace, metadata: {name: " + name + "}}")
	if _, err := w.client.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.eventuallySaid("a", workv1.WorkApplied, "True: True")
}

// TestAdopted_ByTwoWorks: if two works desire different states of a Namespace that neither owns, the older work wins.
func TestAdopted_ByTwoWorks(t *testing.T) {
	w := newWorld(t)
	w.start(w.newAgent())
	manifest := func(team string) string {
		return "{apiVersion: v1, kind: Namespace, metadata: {name: " + w.namespace + ", labels: {team: " + team + "}}}"
	}
	space := apply.Target{GroupVersionResource: corev1.SchemeGroupVersion.WithResource("namespaces"), Name: w.namespace}
	team := func() string { return w.get(space).GetLabels()["team"] }
	w.put("a", w.spec(manifest("a")))
	w.eventuallySaid("a", workv1.WorkApplied, "True: True")
	w.put("b", w.spec(manifest("b")))
	w.eventuallySaid("b", workv1.WorkApplied, "False: False")
	if got := w.message("b", 0, workv1.ManifestApplied); !strings.Contains(got, "ManifestWork a, which had it first") || team() != "a" {
		t.Errorf("it says %q, and the label is %s", got, team())
	}
	w.put("b", w.spec(manifest("a")))
	w.eventuallySaid("b", workv1.WorkApplied, "True: True")
	w.put("b", w.spec(manifest("b")))
	w.eventuallySaid("b", workv1.WorkApplied, "False: False")
	w.delete("a")
	w.eventuallyGone("a")
	w.eventually("the label", "b", team)
	if refs := w.get(space).GetOwnerReferences(); len(refs) > 0 {
		t.Errorf("it is owned: %v", refs)
	}
}
