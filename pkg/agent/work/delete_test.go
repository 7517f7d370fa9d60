// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
	"github.com/clusterhub/clusterhub/pkg/agent/work/worktest"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
)

// TestDelete_WaitsForFinalizersOfOthers verifies that a work waits for finalizers of others, and reports that it is being deleted.
func TestDelete_WaitsForFinalizersOfOthers(t *testing.T) {
	w := newWorld(t)
	w.start(w.newAgent())
	w.put("a", w.spec(w.configMap("cm1", "{}"), w.configMap("cm2", "{}")))
	w.eventuallySaid("a", workv1.WorkApplied, "True: True True")
	for _, name := range []string{"cm1", "cm2"} {
		w.change(w.target(name), func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"example.com/hold"}) })
	}
	w.delete("a")
	for _, name := range []string{"cm1", "cm2"} {
		worktest.Eventually(t, name+" is being deleted", func() bool { return w.get(w.target(name)).GetDeletionTimestamp() != nil })
	}
	w.eventually("what the work says", fmt.Sprintf("True WorkDeleting ManifestWork is being deleted; waits for the deletion of %s; the deletion of %s", w.target("cm1"), w.target("cm2")),
		func() string { return w.deleting("a") })
	w.change(w.target("cm1"), func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
	if w.record("a") == nil || w.get(w.target("cm2")) == nil {
		t.Error("it has gone before its objects")
	}
	w.change(w.target("cm2"), func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
	w.eventuallyGone("a")
	if w.record("a") != nil {
		t.Error("the record was left")
	}
}

// deleting returns what a work reports about its deletion.
func (w *world) deleting(name string) string {
	work := w.work(name)
	if work == nil {
		return "<gone>"
	}
	c := meta.FindStatusCondition(work.Status.Conditions, workv1.WorkDeleting)
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message)
}

// TestDelete_Refused: an object that may not be deleted is reported, and does not delay the status of the rest.
func TestDelete_Refused(t *testing.T) {
	w := newWorld(t)
	var refusing atomic.Bool
	refusing.Store(true)
	w.around = func(request *http.Request, do func() (*http.Response, error)) (*http.Response, error) {
		if refusing.Load() && request.Method == http.MethodDelete && strings.HasSuffix(request.URL.Path, "/configmaps/held") {
			return nil, errors.New("not by me")
		}
		return do()
	}
	w.start(w.newAgent())
	w.put("a", w.spec(w.configMap("cm", "{k: v}"), w.configMap("held", "{}")))
	w.eventuallySaid("a", workv1.WorkApplied, "True: True True")
	w.put("a", w.spec(w.configMap("cm", "{k: w}")))
	w.eventuallySaid("a", workv1.WorkApplied, "True: True")
	if w.get(w.target("held")) == nil || !strings.Contains(w.recorded("a"), "held") {
		t.Error("it is forgotten")
	}
	w.delete("a")
	worktest.Eventually(t, "the work says why it is there", func() bool {
		got := w.deleting("a")
		return strings.Contains(got, "ManifestWork is being deleted; waits for deleting") && strings.Contains(got, "held") && strings.Contains(got, "not by me")
	})
	refusing.Store(false)
	w.eventuallyGone("a")
}

func orphaning(policy workv1.DeletePropagationPolicyType, namespace string, names ...string) *workv1.DeleteOption {
	option := &workv1.DeleteOption{PropagationPolicy: policy}
	for _, name := range names {
		if option.SelectivelyOrphan == nil {
			option.SelectivelyOrphan = &workv1.SelectivelyOrphan{}
		}
		option.SelectivelyOrphan.OrphaningRules = append(option.SelectivelyOrphan.OrphaningRules,
			workv1.OrphaningRule{Resource: "configmaps", Namespace: namespace, Name: name})
	}
	return option
}

func TestDelete_Orphans(t *testing.T) {
	w := newWorld(t)
	w.start(w.newAgent())
	owners := func(name string) string {
		have := w.get(w.target(name))
		if have == nil {
			return "<none>"
		}
		return fmt.Sprint(len(have.GetOwnerReferences()))
	}
	all := w.spec(w.configMap("all", "{}"))
	all.DeleteOption = orphaning(workv1.DeletePropagationPolicyTypeOrphan, "")
	w.put("all", all)
	some := w.spec(w.configMap("stays", "{}"), w.configMap("goes", "{}"), w.configMap("left", "{}"))
	some.DeleteOption = orphaning(workv1.DeletePropagationPolicyTypeSelectivelyOrphan, w.namespace, "stays", "left")
	w.put("some", some)
	w.eventuallySaid("all", workv1.WorkApplied, "True: True")
	w.eventuallySaid("some", workv1.WorkApplied, "True: True True True")
	for name, want := range map[string]string{"all": "0", "stays": "0", "goes": "1", "left": "0"} {
		if got := owners(name); got != want {
			t.Errorf("%s has %s owners, want %s", name, got, want)
		}
	}
	t.Log("What is orphaned stays when it leaves the spec")
	some = w.spec(w.configMap("stays", "{}"), w.configMap("goes", "{}"))
	some.DeleteOption = orphaning(workv1.DeletePropagationPolicyTypeSelectivelyOrphan, w.namespace, "stays", "left")
	w.put("some", some)
	w.eventually("the record", "goes stays", func() string { return w.recorded("some") })
	w.delete("all")
	w.delete("some")
	w.eventuallyGone("all")
	w.eventuallyGone("some")
	for name, want := range map[string]string{"all": "0", "stays": "0", "goes": "<none>", "left": "0"} {
		if got := owners(name); got != want {
			t.Errorf("%s has %s owners, want %s", name, got, want)
		}
	}
	t.Log("What is no orphan any more is owned again")
	all.DeleteOption = orphaning(workv1.DeletePropagationPolicyTypeOrphan, "")
	w.put("all", all)
	w.eventuallySaid("all", workv1.WorkApplied, "True: True")
	all.DeleteOption = nil
	w.put("all", all)
	w.eventually("the owners", "1", func() string { return owners("all") })
	w.delete("all")
	w.eventuallyGone("all")
	if w.get(w.target("all")) != nil {
		t.Error("it was left")
	}
}

// TestDelete_ForgedRecord: a user who may write AppliedManifestWorks must not be able to make the agent delete objects that are not the work's.
func TestDelete_ForgedRecord(t *testing.T) { inEachHome(t, deleteByAForgedRecord) }

func deleteByAForgedRecord(w *world) {
	foreign := worktest.Parse(w.configMap("foreign", "{}"))
	made, err := w.client.Resource(configMaps).Namespace(w.namespace).Create(w.Context(), foreign, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	w.start(w.newAgent())
	w.put("a", w.spec(w.configMap("cm", "{}")))
	w.eventuallySaid("a", workv1.WorkApplied, "True: True")
	forge := func() {
		for {
			record := w.record("a")
			resources, _, _ := unstructured.NestedSlice(record.Object, "status", "appliedResources")
			if w.only != "" {
				text, _, _ := unstructured.NestedString(record.Object, "data", "resources")
				text = strings.TrimSuffix(text, "]") + fmt.Sprintf(`, {"version": "v1", "resource": "configmaps", "name": "foreign", "uid": %q}]`, made.GetUID())
				_ = unstructured.SetNestedField(record.Object, text, "data", "resources")
				if _, err := w.client.Resource(configMaps).Namespace(w.only).Update(w.Context(), record, metav1.UpdateOptions{}); err == nil {
					return
				}
				continue
			}
			resources = append(resources, map[string]any{"version": "v1", "resource": "configmaps", "group": "",
				"namespace": w.namespace, "name": "foreign", "uid": string(made.GetUID())})
			_ = unstructured.SetNestedSlice(record.Object, resources, "status", "appliedResources")
			if _, err := w.client.Resource(apply.AppliedWorks).UpdateStatus(w.Context(), record, metav1.UpdateOptions{}); err == nil {
				return
			}
		}
	}
	forge()
	w.eventually("the record", "cm", func() string { return w.recorded("a") })
	forge()
	w.delete("a")
	w.eventuallyGone("a")
	if have := w.get(w.target("foreign")); have == nil || have.GetDeletionTimestamp() != nil {
		w.Error("what is not the work's was deleted")
	}
}

// TestDelete_RecordIsRecreated: a deleted record is created again, with its objects.
func TestDelete_RecordIsRecreated(t *testing.T) { inEachHome(t, deleteOfARecord) }

func deleteOfARecord(w *world) {
	w.start(w.newAgent())
	w.put("a", w.spec(w.configMap("cm", "{}")))
	w.eventuallySaid("a", workv1.WorkApplied, "True: True")
	before := w.record("a")
	target := w.recordTarget("a")
	if err := w.client.Resource(target.GroupVersionResource).Namespace(target.Namespace).Delete(w.Context(), before.GetName(), metav1.DeleteOptions{}); err != nil {
		w.Fatal(err)
	}
	worktest.Eventually(w.T, "there is another record, and the object belongs to it", func() bool {
		after, have := w.record("a"), w.get(w.target("cm"))
		return after != nil && after.GetUID() != before.GetUID() && have != nil && have.GetDeletionTimestamp() == nil &&
			apply.Owner{UID: after.GetUID(), Namespace: w.only}.Owns(have)
	})
}

func TestEviction(t *testing.T) {
	w := newWorld(t)
	stop := w.start(w.newAgent())
	spec := w.spec(w.configMap("cm", "{}"))
	w.put("stays", spec)
	w.eventuallySaid("stays", workv1.WorkApplied, "True: True")
	stop()
	old := w.record("stays").GetName()
	uid := w.get(w.target("cm")).GetUID()
	oldHub := w.hubURL

	t.Log("The hub has got another address, and another agent goes there: it leaves all alone that is not its own")
	w.hubURL, w.agentID, w.grace = oldHub+"-new", "other", time.Second
	stop = w.start(w.newAgent())
	w.eventually("the owners", "2", func() string { return fmt.Sprint(len(w.get(w.target("cm")).GetOwnerReferences())) })
	stop()
	t.Log("The same agent goes there: what is of the old address goes")
	w.agentID = "agent-" + w.cluster
	stop = w.start(w.newAgent())
	w.eventually("the owners", "1", func() string { return fmt.Sprint(len(w.get(w.target("cm")).GetOwnerReferences())) })
	worktest.Eventually(t, "the old record is gone", func() bool {
		return w.get(apply.Target{GroupVersionResource: apply.AppliedWorks, Name: old}) == nil
	})
	if got := w.get(w.target("cm")).GetUID(); got != uid {
		t.Error("the object was made anew")
	}
	stop()

	t.Log("A work that was lost goes after the grace period, unless that has no end")
	lose := func() {
		t.Helper()
		w.delete("stays")
		work := w.work("stays")
		work.Finalizers = nil
		if _, err := w.works.Update(t.Context(), work, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	lose()
	w.grace = never
	stop = w.start(w.newAgent())
	w.eventuallyIdle()
	stop()
	if w.record("stays") == nil || w.get(w.target("cm")) == nil {
		t.Fatal("it was evicted")
	}
	w.grace = time.Hour
	stop = w.start(w.newAgent())
	evicting := func() bool {
		_, found, _ := unstructured.NestedString(w.record("stays").Object, "status", "evictionStartTime")
		return found
	}
	worktest.Eventually(t, "it is being evicted", evicting)
	w.put("stays", spec)
	worktest.Eventually(t, "it is not evicted any more", func() bool { return !evicting() })
	w.eventuallySaid("stays", workv1.WorkApplied, "True: True")
	stop()
	lose()
	w.grace = time.Second
	w.start(w.newAgent())
	worktest.Eventually(t, "it is gone", func() bool { return w.record("stays") == nil && w.get(w.target("cm")) == nil })
}
