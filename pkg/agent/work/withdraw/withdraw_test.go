// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package withdraw

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
	"github.com/clusterhub/clusterhub/pkg/agent/work/memory"
	"github.com/clusterhub/clusterhub/pkg/agent/work/worktest"
)

func TestMain(m *testing.M) { os.Exit(worktest.Main(m)) }

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// world has an agent's memory, and a namespace with the objects that the agent applied.
type world struct {
	*testing.T
	client    dynamic.Interface
	memory    *memory.Applied
	namespace string
	cluster   *ClusterScoped
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	cluster, err := New(worktest.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	client := worktest.Client(t)
	return &world{T: t, client: client, memory: memory.NewApplied(client, memory.HubHash(t.Name()), t.Name()), namespace: worktest.Namespace(t), cluster: cluster}
}

func (w *world) target(name string) apply.Target {
	return apply.Target{GroupVersionResource: configMaps, Namespace: w.namespace, Name: name}
}

// configMap creates a ConfigMap that belongs to owners, with finalizers.
func (w *world) configMap(name string, finalizers []string, owners ...apply.Owner) {
	w.Helper()
	object := worktest.Parse("{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + "}}")
	var refs []metav1.OwnerReference
	for _, owner := range owners {
		refs = append(refs, owner.Reference())
	}
	object.SetOwnerReferences(refs)
	object.SetFinalizers(finalizers)
	if _, err := w.client.Resource(configMaps).Namespace(w.namespace).Create(w.Context(), object, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
}

// record creates the record of a work, which names these objects.
func (w *world) record(work string, objects ...apply.Target) apply.Owner {
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

// own returns the agent's records.
func (w *world) own() []WorkRecord {
	w.Helper()
	own, _, err := w.cluster.Records(w.Context(), w.Name())
	if err != nil {
		w.Fatal(err)
	}
	return own
}

// finalizers replaces the finalizers of the first record.
func (w *world) finalizers(list ...string) {
	w.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": list}})
	if err == nil {
		_, err = w.cluster.records.Patch(w.Context(), w.own()[0].object.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	}
	if err != nil {
		w.Fatal(err)
	}
}

// end ends all records, and returns what was waited for last.
func (w *world) end(fate Fate) (waited string) {
	w.Helper()
	worktest.Eventually(w.T, "the records are gone", func() bool {
		own := w.own()
		for _, r := range own {
			waits, err := w.cluster.End(w.Context(), r, fate)
			if err != nil {
				w.Fatal(err)
			}
			if waits != "" {
				waited = waits
			}
		}
		return len(own) == 0
	})
	return waited
}

func (w *world) get(name string) *unstructured.Unstructured {
	w.Helper()
	have, err := apply.Get(w.Context(), w.client, w.target(name))
	if err != nil {
		w.Fatal(err)
	}
	return have
}

// unknown creates an object that a record owns and does not name, and waits until the garbage collector has observed it: the garbage collector does
// not orphan an object that it has not observed yet, and deletes it later.
func (w *world) unknown(owner apply.Owner) {
	w.Helper()
	w.configMap("unknown", nil, owner)
	w.collected()
}

// collected waits until the cluster's garbage collector has deleted all objects without an owner.
func (w *world) collected() {
	w.Helper()
	w.configMap("garbage", nil, apply.Owner{Name: "gone", UID: "d8cc4e8c-0000-4000-8000-000000000000"})
	worktest.Eventually(w.T, "garbage is collected", func() bool { return w.get("garbage") == nil })
}

func TestFinalize_Delete(t *testing.T) {
	w := newWorld(t)
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	owner := w.record("w", w.target("brought"), w.target("shared"), w.target("theirs"), w.target("missing"),
		apply.Target{GroupVersionResource: namespaces, Name: "kube-public"},
		apply.Target{GroupVersionResource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gone"}, Name: "x"},
		apply.Target{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "../../api/v1/namespaces"}, Name: w.namespace})
	other := w.record("other")
	w.configMap("brought", nil, owner)
	w.configMap("unknown", nil, owner) // for the garbage collector
	w.configMap("shared", nil, owner, other)
	w.configMap("theirs", nil)
	for _, r := range w.own() {
		if r.Work != "w" {
			continue
		}
		if r.Objects != 7 {
			t.Errorf("the record has %d objects", r.Objects)
		}
		worktest.Eventually(t, "the record is gone", func() bool {
			waits, err := w.cluster.End(t.Context(), r, Delete)
			if err != nil {
				t.Fatal(err)
			}
			return waits == ""
		})
	}
	if w.get("brought") != nil {
		t.Error("what was brought is still there")
	}
	if w.get("theirs") == nil {
		t.Error("what was never the work's is deleted")
	}
	worktest.Eventually(t, "what the record does not say has gone with it", func() bool { return w.get("unknown") == nil })
	if shared := w.get("shared"); shared == nil || len(shared.GetOwnerReferences()) != 1 {
		t.Errorf("what another work has, too, is %v", shared)
	}
}

// A tenant writes a record in the agent's name about objects of others: in its own name, and with the reference of a real one.
func TestFinalize_ForgedRecordDeletesNothing(t *testing.T) {
	w := newWorld(t)
	real := w.record("real", w.target("brought"))
	w.configMap("brought", nil, real)
	w.configMap("victim", nil)
	w.record("forged", w.target("victim"), w.target("brought"))
	for _, fate := range []Fate{Keep, Delete} {
		for _, r := range w.own() {
			if r.Work != "forged" {
				continue
			}
			worktest.Eventually(t, "the forged record is gone", func() bool {
				waits, err := w.cluster.End(t.Context(), r, fate)
				if err != nil {
					t.Fatal(err)
				}
				return waits == ""
			})
		}
		w.record("forged", w.target("victim"), w.target("brought"))
	}
	w.collected()
	if have := w.get("brought"); w.get("victim") == nil || have == nil || len(have.GetOwnerReferences()) != 1 {
		t.Errorf("the forged record has done something: %v", have)
	}
}

// Kept objects stay after the garbage collector has run, even those that no record names; and they have no owner any more.
func TestFinalize_Orphan(t *testing.T) {
	w := newWorld(t)
	owner := w.record("w", w.target("brought"), w.target("missing"))
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

// A user starts with delete, and then chooses keep: objects that still exist stay.
func TestFinalize_OrphanAfterDelete(t *testing.T) {
	w := newWorld(t)
	owner := w.record("w", w.target("held"), w.target("late"))
	w.configMap("held", []string{"example.com/held"}, owner)
	waits, err := w.cluster.End(t.Context(), w.own()[0], Delete)
	if err != nil || waits != "the deletion of configmaps "+w.namespace+"/held" {
		t.Fatalf("%q, %v", waits, err)
	}
	w.configMap("late", nil, owner)
	w.unknown(owner)
	w.end(Keep)
	w.collected()
	for _, name := range []string{"late", "unknown"} {
		if have := w.get(name); have == nil || len(have.GetOwnerReferences()) > 0 {
			t.Errorf("%s is %v", name, have)
		}
	}
	patch := []byte(`{"metadata":{"finalizers":null}}`)
	if _, err := w.client.Resource(configMaps).Namespace(w.namespace).Patch(t.Context(), "held", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestFinalize_WaitsForFinalizersOfOthers(t *testing.T) {
	w := newWorld(t)
	w.record("w")
	w.finalizers(memory.Finalizer, "example.com/held")
	waits, err := w.cluster.End(t.Context(), w.own()[0], Delete)
	if err != nil || waits != "the finalizers example.com/held of the record of work w" {
		t.Errorf("%q, %v", waits, err)
	}
	w.finalizers()
	w.end(Delete)
	if _, err := w.cluster.End(t.Context(), WorkRecord{}, "burn"); err == nil {
		t.Error("there is a third fate")
	}
}

// After a crash at any of its writes, it continues: an object that stays is never garbage.
func TestFinalize_ResumesAfterCrashAtEachWrite(t *testing.T) {
	w := newWorld(t)
	for writes := int64(0); writes < 8; writes++ {
		for _, fate := range []Fate{Keep, Delete} {
			name := fmt.Sprintf("%s-%d", fate, writes)
			owner := w.record(name, w.target(name+"-a"), w.target(name+"-b"))
			w.configMap(name+"-a", nil, owner)
			w.configMap(name+"-b", nil, owner)
			var left atomic.Int64
			left.Store(writes)
			config := worktest.Config(t)
			config.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return roundTripper(func(r *http.Request) (*http.Response, error) {
					if r.Method != http.MethodGet && left.Add(-1) < 0 {
						return nil, errors.New("killed")
					}
					return next.RoundTrip(r)
				})
			})
			killed, err := New(config)
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				for _, r := range w.own() {
					if _, err := killed.End(t.Context(), r, fate); err != nil && !strings.Contains(err.Error(), "killed") {
						t.Fatal(err)
					}
				}
			}
			w.end(fate)
		}
	}
	w.collected()
	for writes := range 8 {
		for _, object := range []string{"a", "b"} {
			if w.get(fmt.Sprintf("keep-%d-%s", writes, object)) == nil || w.get(fmt.Sprintf("delete-%d-%s", writes, object)) != nil {
				t.Errorf("killed after %d writes, %s is there that is to go, or has gone that is to stay", writes, object)
			}
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Records of other agents, and those whose name does not match their spec, are only counted.
func TestRecords(t *testing.T) {
	w := newWorld(t)
	w.record("w")
	other := memory.NewApplied(w.client, memory.HubHash("other"+t.Name()), "other")
	if _, err := other.Ensure(t.Context(), "w", nil, false); err != nil {
		t.Fatal(err)
	}
	forged := w.record("forged")
	patch := []byte(`{"spec":{"manifestWorkName":"another"}}`)
	if _, err := w.cluster.records.Patch(t.Context(), forged.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	own, others, err := w.cluster.Records(t.Context(), t.Name())
	if err != nil || len(own) != 1 || own[0].Work != "w" || others < 2 {
		t.Errorf("there are %v, and %d others: %v", own, others, err)
	}
	if some, err := w.cluster.Some(t.Context(), t.Name()); err != nil || len(some) != len(own) {
		t.Errorf("some are %v, want %v: %v", some, own, err)
	}
	if own, _, err := w.cluster.Records(t.Context(), ""); err != nil || len(own) > 0 {
		t.Errorf("an agent without a name has %v: %v", own, err)
	}
	// A cluster that no agent of works has ever been on.
	bare := &ClusterScoped{client: w.client, records: w.client.Resource(schema.GroupVersionResource{Group: apply.WorkGroup, Version: "v1", Resource: "nothings"})}
	if own, others, err := bare.Records(t.Context(), "a"); err != nil || len(own)+others > 0 {
		t.Errorf("there are %v, and %d others: %v", own, others, err)
	}
}

// A record that replaced the one that was read stays.
func TestFinalize_RetainsRecreatedRecord(t *testing.T) {
	w := newWorld(t)
	w.record("w")
	read := w.own()[0]
	w.end(Delete)
	w.record("w")
	if _, err := w.cluster.End(t.Context(), read, Delete); err != nil && !apierrors.IsConflict(err) {
		t.Error(err)
	}
	if own := w.own(); len(own) != 1 || own[0].object.DeletionTimestamp != nil {
		t.Errorf("the records are %+v, want a new one that stays", own)
	}
}
