// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package withdraw

import (
	"encoding/json"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
	"github.com/clusterhub/clusterhub/pkg/agent/work/memory"
	"github.com/clusterhub/clusterhub/pkg/agent/work/worktest"
)

// team is a namespace to which an agent of that namespace has applied works, accessed by a user who has the ClusterRole admin there and no other
// rights.
type team struct {
	*world
	memory  *memory.Namespaced
	cluster *Namespaced
}

func newTeam(t *testing.T) *team {
	t.Helper()
	w := newWorld(t)
	user := rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "user-of-" + w.namespace}
	admin := kubernetes.NewForConfigOrDie(worktest.Config(t))
	_, err := admin.RbacV1().RoleBindings(w.namespace).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "team"},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"}, Subjects: []rbacv1.Subject{user}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := worktest.Config(t)
	config.Impersonate.UserName = user.Name
	cluster, err := NewNamespaced(config, w.namespace)
	if err != nil {
		t.Fatal(err)
	}
	return &team{world: w, cluster: cluster, memory: memory.NewNamespaced(w.client, w.namespace, memory.HubHash(t.Name()), w.namespace)}
}

func (w *team) record(work string, objects ...apply.Target) apply.Owner {
	w.Helper()
	r, err := w.memory.Ensure(w.Context(), work, nil, false)
	if err != nil {
		w.Fatal(err)
	}
	var resources []memory.AppliedResource
	for _, t := range objects {
		resources = append(resources, memory.AppliedResource{Target: t})
	}
	if err := w.memory.SetResources(w.Context(), r, resources); err != nil {
		w.Fatal(err)
	}
	return r.Owner
}

func (w *team) own() []WorkRecord {
	w.Helper()
	own, others, err := w.cluster.Records(w.Context(), w.namespace)
	if err != nil || others > 0 {
		w.Fatalf("%d others: %v", others, err)
	}
	return own
}

// end ends all records, and returns what was waited for.
func (w *team) end(fate Fate) (waited string) {
	w.Helper()
	worktest.Eventually(w.T, "the records are gone", func() bool {
		own := w.own()
		for _, r := range own {
			waits, err := w.cluster.End(w.Context(), r, fate)
			if err != nil {
				w.Fatal(err)
			}
			if waits != "" && !strings.Contains(waits, metav1.FinalizerOrphanDependents) {
				waited = waits
			}
		}
		return len(own) == 0
	})
	return waited
}

func TestNamespaced_FinalizeDeletesOwnedOnly(t *testing.T) {
	w := newTeam(t)
	owner := w.record("w", w.target("brought"), w.target("shared"), w.target("theirs"), w.target("missing"),
		apply.Target{GroupVersionResource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gone"}, Namespace: w.namespace, Name: "x"},
		apply.Target{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "../../namespaces"}, Namespace: w.namespace, Name: w.namespace},
		apply.Target{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Namespace: w.namespace, Name: w.namespace})
	// A record of another agent in the namespace.
	others := memory.NewNamespaced(w.client, w.namespace, memory.HubHash("other"), "another")
	other, err := others.Ensure(t.Context(), "w", nil, false)
	if err != nil {
		t.Fatal(err)
	}
	w.configMap("brought", nil, owner)
	w.configMap("unknown", nil, owner) // for the garbage collector
	w.configMap("shared", nil, owner, other.Owner)
	w.configMap("theirs", nil)
	if own := w.own(); len(own) != 1 || own[0].Work != "w" || own[0].Objects != 7 {
		t.Fatalf("the records are %+v", own)
	}
	w.end(Delete)
	if w.get("brought") != nil {
		t.Error("what was brought is still there")
	}
	worktest.Eventually(t, "what the record does not say is collected", func() bool { return w.get("unknown") == nil })
	if shared := w.get("shared"); shared == nil || len(shared.GetOwnerReferences()) != 1 || w.get("theirs") == nil {
		t.Errorf("of others there are %v and %v", shared, w.get("theirs"))
	}
	if left, err := others.List(t.Context()); err != nil || len(left) != 1 {
		t.Errorf("the other agent has %d records: %v", len(left), err)
	}
	if own, _, err := w.cluster.Records(t.Context(), ""); err != nil || len(own) > 0 {
		t.Errorf("an agent without an ID has %v: %v", own, err)
	}
}

func TestNamespaced_FinalizeOrphans(t *testing.T) {
	w := newTeam(t)
	owner := w.record("w", w.target("brought"))
	w.configMap("brought", nil, owner)
	w.unknown(owner)
	w.end(Keep)
	w.collected()
	for _, name := range []string{"brought", "unknown"} {
		if have := w.get(name); have == nil || len(have.GetOwnerReferences()) > 0 {
			t.Errorf("%s is %v", name, have)
		}
	}
}

// Objects with finalizers of others are waited for, and reported.
func TestNamespaced_FinalizeWaits(t *testing.T) {
	w := newTeam(t)
	owner := w.record("w", w.target("brought"))
	w.configMap("brought", []string{"example.com/held"}, owner)
	hold := func(name string, finalizers ...string) {
		t.Helper()
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": finalizers}})
		if err == nil {
			_, err = w.client.Resource(configMaps).Namespace(w.namespace).Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	hold(owner.Name, "example.com/kept")
	for _, want := range []string{"the deletion of ", "the finalizers example.com/kept of the record of work w"} {
		for range 2 { // it does not ask again
			waits, err := w.cluster.End(t.Context(), w.own()[0], Delete)
			if err != nil || !strings.HasPrefix(waits, want) {
				t.Errorf("it waits for %q, %v, want %q", waits, err, want)
			}
		}
		if strings.HasPrefix(want, "the deletion") {
			hold("brought")
		}
	}
	hold(owner.Name)
	w.end(Delete)
	if _, err := w.cluster.End(t.Context(), WorkRecord{kept: &memory.Record{}}, "lose"); err == nil {
		t.Error("there is no such fate")
	}
}

// A record is not deleted because of an object that the cluster serves and the user may not read: the object may exist.
func TestNamespaced_FinalizeRefusesUnreadable(t *testing.T) {
	w := newTeam(t)
	roles := schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
	w.record("w", apply.Target{GroupVersionResource: roles, Namespace: w.namespace, Name: "x"})
	if _, err := w.cluster.End(t.Context(), w.own()[0], Delete); err == nil || !strings.Contains(err.Error(), "cannot get resource") {
		t.Errorf("it is ended: %v", err)
	}
}

// TestAttack_NamespacedRecordDeletesOnlyOwned: a user who may write ConfigMaps in the namespace names existing objects in a record.
func TestAttack_NamespacedRecordDeletesOnlyOwned(t *testing.T) {
	w := newTeam(t)
	forged := w.record("forged", w.target("theirs"), w.target("anew"))
	w.configMap("theirs", nil)
	w.configMap("anew", nil, apply.Owner{Name: forged.Name, UID: "d8cc4e8c-0000-4000-8000-000000000001", Namespace: w.namespace})
	for _, r := range w.own() {
		if err := w.cluster.cluster.eachObject(t.Context(), r, func(owner apply.Owner, target apply.Target, _ types.UID) error {
			if owner.Namespace != w.namespace || target.Namespace != w.namespace {
				t.Errorf("%v is asked for as %v", target, owner)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	w.end(Delete)
	if w.get("theirs") == nil {
		t.Error("what the record does not own is deleted")
	}
}
