// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// watches returns what a controller watches and, by the handlers and predicates of each watch, which requests an event leads to. A handler that
// reads the cache finds nothing there.
func watches(ctx context.Context, controller reflect.Value) (lines []string) {
	sources := writable(controller.FieldByName("startWatches"))
	for i := range sources.Len() {
		source := indirect(sources.Index(i))
		if source.Kind() != reflect.Struct || !source.FieldByName("Type").IsValid() {
			name, _, _ := strings.Cut(typeName(source), "[")
			lines = append(lines, name)
			continue
		}
		kind, _ := source.FieldByName("Type").Interface().(client.Object)
		handles, _ := source.FieldByName("Handler").Interface().(handler.EventHandler)
		filters, _ := source.FieldByName("Predicates").Interface().([]predicate.Predicate)
		lines = append(lines, fmt.Sprintf("%s: %s", typeName(reflect.ValueOf(kind)), strings.Join(requests(ctx, kind, handles, filters), "; ")))
	}
	return lines
}

// writable returns a value of an unexported field as if it were of an exported one.
func writable(v reflect.Value) reflect.Value {
	return reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
}

// changes are what events may be about.
var changes = []struct {
	name string
	make func(old, changed client.Object)
}{
	{"version", func(client.Object, client.Object) {}},
	{"generation", func(_, o client.Object) { o.SetGeneration(2) }},
	{"label", func(_, o client.Object) { o.GetLabels()["changed"] = "yes" }},
	{"annotation", func(_, o client.Object) { o.GetAnnotations()["changed"] = "yes" }},
	{"finalizer added", func(_, o client.Object) { o.SetFinalizers([]string{"example.com/a", "example.com/b"}) }},
	{"finalizer removed", func(_, o client.Object) { o.SetFinalizers(nil) }},
	{"deletion", func(_, o client.Object) { o.SetDeletionTimestamp(new(metav1.Unix(1, 0))) }},
	{"change under deletion", func(old, o client.Object) {
		for _, o := range []client.Object{old, o} {
			o.SetDeletionTimestamp(new(metav1.Unix(1, 0)))
		}
	}},
}

// requests returns the events that lead to requests, or to nothing, and leaves those out that a predicate does not let through.
func requests(ctx context.Context, kind client.Object, handles handler.EventHandler, filters []predicate.Predicate) (lines []string) {
	var outcomes []string
	events := map[string][]string{}
	try := func(name string, passes func(predicate.Predicate) bool, handle func(*queued)) {
		for _, filter := range filters {
			if !passes(filter) {
				return
			}
		}
		q := &queued{}
		handle(q)
		slices.Sort(q.requests)
		outcome := strings.Join(slices.Compact(q.requests), " ")
		if outcome == "" {
			outcome = "nothing"
		}
		if events[outcome] == nil {
			outcomes = append(outcomes, outcome)
		}
		events[outcome] = append(events[outcome], name)
	}
	created := event.CreateEvent{Object: sample(kind)}
	try("create", func(p predicate.Predicate) bool { return p.Create(created) }, func(q *queued) { handles.Create(ctx, created, q) })
	for _, change := range changes {
		updated := event.UpdateEvent{ObjectOld: sample(kind), ObjectNew: sample(kind)}
		updated.ObjectNew.SetResourceVersion("2")
		change.make(updated.ObjectOld, updated.ObjectNew)
		try(change.name, func(p predicate.Predicate) bool { return p.Update(updated) }, func(q *queued) { handles.Update(ctx, updated, q) })
	}
	deleted := event.DeleteEvent{Object: sample(kind)}
	try("delete", func(p predicate.Predicate) bool { return p.Delete(deleted) }, func(q *queued) { handles.Delete(ctx, deleted, q) })
	for _, outcome := range outcomes {
		of := strings.Join(events[outcome], ", ")
		if len(events[outcome]) == len(changes)+2 {
			of = "all"
		}
		lines = append(lines, of+" -> "+outcome)
	}
	if len(lines) == 0 {
		return []string{"only other names"}
	}
	return lines
}

// sample returns an object of a kind, whose labels name the one that a request has come from.
func sample(kind client.Object) client.Object {
	o := reflect.New(reflect.TypeOf(kind).Elem()).Interface().(client.Object)
	o.SetNamespace("NAMESPACE")
	o.SetName("NAME")
	o.SetUID("UID")
	o.SetResourceVersion("1")
	o.SetGeneration(1)
	o.SetFinalizers([]string{"example.com/a"})
	o.SetAnnotations(map[string]string{})
	o.SetLabels(map[string]string{})
	for _, key := range []string{registration.ClusterNameLabel, cluster.ClusterSetLabel, cluster.PlacementLabel, work.ReplicaSetLabel, work.PlacementLabel} {
		o.GetLabels()[key] = "<" + key + ">"
	}
	return o
}

// queued is a queue that records what is added to it.
type queued struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	requests []string
}

// Add implements workqueue.TypedInterface.
func (q *queued) Add(r reconcile.Request) { q.requests = append(q.requests, r.String()) }

// AddAfter implements workqueue.TypedDelayingInterface.
func (q *queued) AddAfter(r reconcile.Request, _ time.Duration) { q.Add(r) }

// AddRateLimited implements workqueue.TypedRateLimitingInterface.
func (q *queued) AddRateLimited(r reconcile.Request) { q.Add(r) }
