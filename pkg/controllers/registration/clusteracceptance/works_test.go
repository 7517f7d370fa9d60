// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteracceptance

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// put creates an object in the namespace of a cluster, with the finalizer of the agent. The priority may be empty.
func (f *fixture) put(object client.Object, namespace, name, priority string) client.Object {
	f.Helper()
	object.SetNamespace(namespace)
	object.SetName(name)
	object.SetFinalizers([]string{workv1.ManifestWorkFinalizer})
	if priority != "" {
		object.SetAnnotations(map[string]string{work.CleanupPriorityAnnotation: priority})
	}
	if err := f.client.Create(f.Context(), object); err != nil {
		f.Fatal(err)
	}
	return object
}

// let removes the finalizer, as the agent does once it has deleted an object from its cluster.
func (f *fixture) let(object client.Object) {
	f.Helper()
	if err := f.client.Get(f.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		f.Fatal(err)
	}
	if object.GetDeletionTimestamp().IsZero() {
		f.Errorf("%s is not being deleted", object.GetName())
	}
	object.SetFinalizers(nil)
	if err := f.client.Update(f.Context(), object); err != nil {
		f.Fatal(err)
	}
}

// terminating returns the works that are being deleted.
func (f *fixture) terminating() (names []string) {
	f.Helper()
	list := &workv1.ManifestWorkList{}
	if err := f.client.List(f.Context(), list); err != nil {
		f.Fatal(err)
	}
	for _, w := range list.Items {
		if !w.DeletionTimestamp.IsZero() {
			names = append(names, w.Name)
		}
	}
	return names
}

func (f *fixture) bindings() int {
	f.Helper()
	list := &rbacv1.RoleBindingList{}
	if err := f.client.List(f.Context(), list, client.InNamespace("c1")); err != nil {
		f.Fatal(err)
	}
	return len(list.Items)
}

func TestRemove_DeletesWorksBeforeAgentRights(t *testing.T) {
	f := newFixture(t, newCluster("c1"), newCluster("c2"))
	f.settle("c1")
	f.settle("c2")
	addOn := &metav1.PartialObjectMetadata{}
	addOn.SetGroupVersionKind(delivered[0])
	f.put(addOn, "c1", "search", "")
	works := map[string]client.Object{}
	for name, priority := range map[string]string{"first": "", "odd": "-7", "second": "10", "last": "100"} {
		works[name] = f.put(&workv1.ManifestWork{}, "c1", name, priority)
	}
	f.put(&workv1.ManifestWork{}, "c2", "others", "")
	deleteCluster(f)

	var wait time.Duration
	next := func(what string, want ...string) {
		t.Helper()
		f.clock.SetTime(f.clock.Now().Add(wait))
		result, err := f.reconcile("c1")
		wait = result.RequeueAfter
		if got := f.terminating(); err != nil || result.RequeueAfter < minLeftInterval || result.RequeueAfter > maxLeftInterval || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v, being deleted are %q, want %q", what, result, err, got, want)
		}
		if f.bindings() != 2 || len(f.cloud.granted) != 2 {
			t.Errorf("%s: the agent has %d bindings, and granted is %v", what, f.bindings(), f.cloud.granted)
		}
	}
	next("the add-on")
	f.let(addOn)
	next("the first works", "first", "odd")
	f.restart()
	next("another process", "first", "odd")
	f.let(works["first"])
	next("one is left", "odd")
	f.let(works["odd"])
	next("the second", "second")
	f.let(works["second"])
	next("the last", "last")
	f.clock.SetTime(f.clock.Now().Add(1000 * time.Hour))
	next("after a long time", "last")
	f.let(works["last"])
	f.settle("c1")
	if err := f.client.Get(t.Context(), client.ObjectKey{Name: "c1"}, &clusterv1.ManagedCluster{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the cluster is still there: %v", err)
	}
	if f.bindings() != 0 || len(f.cloud.granted) != 1 || len(f.terminating()) != 0 {
		t.Errorf("%d bindings, granted %v, terminating %v", f.bindings(), f.cloud.granted, f.terminating())
	}
}

// An agent without access deletes nothing from its cluster, and what is in a namespace of another owner is not the cluster's.
func TestRemove_DoesNotWaitForUnmanagedWorks(t *testing.T) {
	for name, change := range map[string]func(f *fixture){
		"a denied cluster": func(f *fixture) { f.change("c1", deny) },
		"a namespace of somebody else": func(f *fixture) {
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}
			if err := f.client.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace); err != nil {
				t.Fatal(err)
			}
			namespace.Labels = nil
			if err := f.client.Update(t.Context(), namespace); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newCluster("c1"))
			f.settle("c1")
			f.put(&workv1.ManifestWork{}, "c1", "web", "")
			change(f)
			deleteCluster(f)
			f.settle("c1")
			if err := f.client.Get(t.Context(), client.ObjectKey{Name: "c1"}, &clusterv1.ManagedCluster{}); client.IgnoreNotFound(err) != nil || err == nil {
				t.Errorf("the cluster is still there: %v", err)
			}
			if got := f.terminating(); len(got) != 0 {
				t.Errorf("being deleted are %q", got)
			}
		})
	}
}

// TestRemove_ReportsProgress verifies that there is a condition that is written when something has changed, and one event.
func TestRemove_ReportsProgress(t *testing.T) {
	cluster := newCluster("c1")
	cluster.Finalizers = []string{"others.example.com/keep"}
	f := newFixture(t, cluster)
	f.settle("c1")
	works := map[string]client.Object{}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		works[name] = f.put(&workv1.ManifestWork{}, "c1", name, "")
	}
	deleteCluster(f)
	said := func() metav1.Condition {
		t.Helper()
		c := meta.FindStatusCondition(f.cluster("c1").Status.Conditions, registration.ConditionDeleting)
		if c == nil {
			return metav1.Condition{}
		}
		return *c
	}
	events := func() (texts []string) {
		for len(f.events.Events) > 0 {
			if text := <-f.events.Events; strings.Contains(text, "ManagedClusterWaitsForAgent") {
				texts = append(texts, text)
			}
		}
		return texts
	}
	// look is a reconciliation when it is due. It returns how often the condition was written.
	look := func() (writes int) {
		t.Helper()
		before := len(f.effects)
		result, err := f.reconcile("c1")
		if err != nil {
			t.Fatal(err)
		}
		f.clock.SetTime(f.clock.Now().Add(result.RequeueAfter))
		for _, effect := range f.effects[before:] {
			if effect == "patch status ManagedCluster c1" {
				writes++
			}
		}
		return writes
	}
	if writes := look(); writes != 1 {
		t.Errorf("the condition was written %d times", writes)
	}
	c := said()
	if c.Status != metav1.ConditionFalse || c.Reason != registration.ReasonResourceRemaining ||
		!strings.Contains(c.Message, "ManifestWorks a, b, c and 2 more") || !strings.Contains(c.Message, "kubectl hub deny --clusters c1") {
		t.Errorf("the condition is %+v", c)
	}
	if told := events(); len(told) != 1 || !strings.HasPrefix(told[0], "Normal") || !strings.Contains(told[0], c.Message) {
		t.Errorf("the events are %q", told)
	}
	for range 5 {
		if writes := look(); writes != 0 {
			t.Errorf("nothing has changed, and there were %d writes", writes)
		}
	}
	f.let(works["a"])
	// Writes of others cause no check before it is due: there may be many works, which are deleted one by one.
	for range 2 {
		f.clock.SetTime(f.clock.Now().Add(-time.Second))
		before := len(f.effects)
		if result, err := f.reconcile("c1"); err != nil || result.RequeueAfter != time.Second || len(f.effects) != before {
			t.Errorf("too early: %v, %v, %q", result, err, f.effects[before:])
		}
		f.clock.SetTime(f.clock.Now().Add(time.Second))
		if writes := look(); writes > 1 {
			t.Errorf("there were %d writes", writes)
		}
		c = said()
		if !strings.Contains(c.Message, "ManifestWorks b, c, d and 1 more") {
			t.Errorf("the condition is %+v", c)
		}
	}
	if told := events(); len(told) != 0 {
		t.Errorf("there are more events: %q", told)
	}
	// The agent is gone forever.
	f.change("c1", deny)
	f.settle("c1")
	c = said()
	if c.Status != metav1.ConditionTrue || c.Reason != registration.ReasonNoResource {
		t.Errorf("at the end the condition is %+v", c)
	}
	if left := f.cluster("c1").Finalizers; !slices.Equal(left, []string{"others.example.com/keep"}) || len(events()) != 0 {
		t.Errorf("finalizers %q", left)
	}
}

// TestRemove_WithoutWorksReportsNothing verifies that a cluster that waits for nothing is deleted without a condition and events.
func TestRemove_WithoutWorksReportsNothing(t *testing.T) {
	f := newFixture(t, newCluster("c1"))
	f.settle("c1")
	deleteCluster(f)
	before := len(f.effects)
	f.settle("c1")
	if slices.Contains(f.effects[before:], "patch status ManagedCluster c1") {
		t.Errorf("the condition was written: %q", f.effects[before:])
	}
}

// TestRemove_TruncatedMessageSaysWhatToDo verifies that a message that is too long loses names at its end, and not what to do.
func TestRemove_TruncatedMessageSaysWhatToDo(t *testing.T) {
	f := newFixture(t, newCluster("c1"))
	f.settle("c1")
	for _, name := range []string{"a", "b", "c", "d"} {
		f.put(&workv1.ManifestWork{}, "c1", strings.Repeat(name, 253), "")
	}
	deleteCluster(f)
	if _, err := f.reconcile("c1"); err != nil {
		t.Fatal(err)
	}
	c := meta.FindStatusCondition(f.cluster("c1").Status.Conditions, registration.ConditionDeleting)
	if c == nil || len(c.Message) > 1000 || !strings.Contains(c.Message, "kubectl hub deny --clusters c1") {
		t.Errorf("the condition is %+v", c)
	}
}
