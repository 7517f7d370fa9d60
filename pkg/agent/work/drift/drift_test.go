// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"context"
	"os"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
	"github.com/clusterhub/clusterhub/pkg/agent/work/worktest"
)

func TestMain(m *testing.M) { os.Exit(worktest.Main(m)) }

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// world is a Watcher of objects of one namespace.
type world struct {
	*testing.T
	*Watcher
	objects   dynamic.ResourceInterface
	namespace string

	mu   sync.Mutex
	told map[string]int
}

func newWorld(t *testing.T, config *rest.Config) *world {
	t.Helper()
	w := &world{T: t, namespace: worktest.Namespace(t), told: map[string]int{}}
	w.objects = worktest.Client(t).Resource(configMaps).Namespace(w.namespace)
	w.Watcher = &Watcher{Client: metadata.NewForConfigOrDie(config), Most: 10,
		Changed: func(work string) { w.mu.Lock(); w.told[work]++; w.mu.Unlock() }}
	return w
}

func (w *world) context() context.Context {
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.New(nil)))
	w.Cleanup(func() { cancel(); w.Wait() })
	return ctx
}

func (w *world) target(name string) apply.Target {
	return apply.Target{GroupVersionResource: configMaps, Namespace: w.namespace, Name: name}
}

func (w *world) create(name string) *unstructured.Unstructured {
	w.Helper()
	made, err := w.objects.Create(w.Context(), worktest.Parse("{apiVersion: v1, kind: ConfigMap, metadata: {name: "+name+"}}"), metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return made
}

func (w *world) change(object *unstructured.Unstructured, value string) *unstructured.Unstructured {
	w.Helper()
	object = object.DeepCopy()
	object.Object["data"] = map[string]any{"k": value}
	after, err := w.objects.Update(w.Context(), object, metav1.UpdateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return after
}

func (w *world) times(work string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.told[work]
}

func TestWatcher(t *testing.T) {
	w := newWorld(t, worktest.Config(t))
	ctx := w.context()
	first := w.create("cm")
	at := first.GetResourceVersion()
	other := w.create("other")
	for _, work := range []string{"a", "b"} {
		if !w.Watch(ctx, work, w.target("cm"), at) {
			t.Fatal("it is not watched")
		}
	}
	if !w.Fresh(w.target("cm"), at) || w.Fresh(w.target("other"), "") {
		t.Error("it is not known how it is, or known of what is not watched")
	}
	w.change(other, "1") // no work is notified of that
	second := w.change(first, "1")
	worktest.Eventually(t, "both works hear of a change", func() bool { return w.times("a") == 1 && w.times("b") == 1 })
	if w.Fresh(w.target("cm"), at) {
		t.Error("what has changed is as it was")
	}
	at = second.GetResourceVersion()
	w.Seen(w.target("cm"), at)
	if !w.Fresh(w.target("cm"), at) {
		t.Error("what was seen is not known")
	}

	// A write by the agent is not a change; and the other work is no longer notified.
	w.Retain("b", nil)
	third := w.change(second, "2")
	w.Seen(w.target("cm"), third.GetResourceVersion())
	if err := w.objects.Delete(t.Context(), "cm", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	worktest.Eventually(t, "it is known to be gone", func() bool { return !w.Fresh(w.target("cm"), third.GetResourceVersion()) })
	if got := w.times("b"); got != 1 {
		t.Errorf("a work that does not watch any more was told %d times", got)
	}
	before := w.times("a")
	w.create("cm")
	worktest.Eventually(t, "it is known to be back", func() bool { return w.times("a") > before })
}

// TestWatcher_MissingObject: a watch of an object that does not exist reports its creation.
func TestWatcher_MissingObject(t *testing.T) {
	w := newWorld(t, worktest.Config(t))
	w.Watch(w.context(), "a", w.target("cm"), "")
	worktest.Eventually(t, "it is watched", func() bool { return w.Fresh(w.target("cm"), "") })
	before := w.times("a")
	w.create("cm")
	worktest.Eventually(t, "it has come", func() bool { return w.times("a") > before && !w.Fresh(w.target("cm"), "") })
}

func TestWatcher_IsBounded(t *testing.T) {
	w := newWorld(t, worktest.Config(t))
	ctx := w.context()
	w.Most = 1
	if !w.Watch(ctx, "a", w.target("cm1"), "1") || w.Watch(ctx, "a", w.target("cm2"), "1") || w.Fresh(w.target("cm2"), "1") {
		t.Error("more is watched than may be")
	}
	w.Retain("a", sets.New(w.target("cm2")))
	if !w.Watch(ctx, "a", w.target("cm2"), "1") {
		t.Error("it is not watched")
	}
}

// TestWatcher_WithoutPermission: without the right to watch, an object is never reported as unchanged.
func TestWatcher_WithoutPermission(t *testing.T) {
	config := worktest.Config(t)
	config.Impersonate.UserName = "nobody"
	w := newWorld(t, config)
	at := w.create("cm").GetResourceVersion()
	w.Watch(w.context(), "a", w.target("cm"), at)
	worktest.Eventually(t, "it is known that it is not watched", func() bool { return !w.Fresh(w.target("cm"), at) && w.times("a") == 1 })
}
