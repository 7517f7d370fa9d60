// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/operator/klusterlet/plan"
	"github.com/clusterhub/clusterhub/pkg/remote/apply"
)

var (
	definitionID = apply.ID{GroupKind: plan.Definitions.GroupKind(), NamespacedName: types.NamespacedName{Name: "d"}}
	accountID    = apply.ID{GroupKind: schema.GroupKind{Kind: "ServiceAccount"}, NamespacedName: types.NamespacedName{Namespace: "n", Name: "a"}}
)

// observer has the observations of Klusterlets a and b, which share a definition and have one account each.
type observer struct {
	*observations
	mu       sync.Mutex
	enqueued []string
}

func newObserver() *observer {
	s := &observer{}
	s.observations = &observations{burst: changeBurst, interval: changeInterval, enqueue: func(name string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.enqueued = append(s.enqueued, name)
	}}
	for _, name := range []string{"a", "b"} {
		s.reconcile(name, object())
	}
	return s
}

// reconcile is a reconcile that finds, or writes, objects in the same state.
func (s *observer) reconcile(name string, o *metav1.ObjectMeta) {
	s.begin(name)
	s.track(name, "mark."+name, []apply.ID{definitionID, accountOf(name)})
	s.record(name, definitionID, o)
	s.record(name, accountOf(name), o)
	s.end(name)
}

func accountOf(name string) apply.ID {
	id := accountID
	id.Namespace = name
	return id
}

func object() *metav1.ObjectMeta {
	return &metav1.ObjectMeta{UID: "u", ResourceVersion: "5", Generation: 1,
		Labels: map[string]string{"mark.a": "1", "mark.b": "2", LabelShared: "", deploy.LabelManagedBy: Manager}}
}

// takeEnqueued returns the Klusterlets that are enqueued after all events are processed.
func (s *observer) takeEnqueued() (enqueued []string) {
	time.Sleep(time.Minute)
	s.mu.Lock()
	defer s.mu.Unlock()
	enqueued, s.enqueued = s.enqueued, nil
	slices.Sort(enqueued)
	return slices.Compact(enqueued)
}

func (s *observer) allEnqueued() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.enqueued)
}

func TestObservations_WhatEnqueues(t *testing.T) {
	for name, test := range map[string]struct {
		id     apply.ID
		change func(*metav1.ObjectMeta)
		want   string
	}{
		"the label of another":       {definitionID, func(o *metav1.ObjectMeta) { o.ResourceVersion, o.Labels["mark.c"] = "6", "3" }, "[]"},
		"the managers of its fields": {definitionID, func(o *metav1.ObjectMeta) { o.ManagedFields = []metav1.ManagedFieldsEntry{{}} }, "[]"},
		"one more annotation":        {definitionID, func(o *metav1.ObjectMeta) { o.Annotations = map[string]string{"x": "y"} }, "[]"},
		"its own label is gone":      {definitionID, func(o *metav1.ObjectMeta) { delete(o.Labels, "mark.a") }, "[a]"},
		"its own label is another":   {definitionID, func(o *metav1.ObjectMeta) { o.Labels["mark.b"] = "3" }, "[b]"},
		"it is not found as shared":  {definitionID, func(o *metav1.ObjectMeta) { delete(o.Labels, LabelShared) }, "[a b]"},
		"what it is":                 {definitionID, func(o *metav1.ObjectMeta) { o.Generation++ }, "[a b]"},
		"it is being deleted":        {definitionID, func(o *metav1.ObjectMeta) { o.DeletionTimestamp = &metav1.Time{} }, "[a b]"},
		"it was made anew":           {definitionID, func(o *metav1.ObjectMeta) { o.UID = "v" }, "[a b]"},
		"it is another agent's":      {definitionID, func(o *metav1.ObjectMeta) { o.Labels[deploy.AgentLabel] = deploy.AgentName }, "[a b]"},
		"its own object":             {accountOf("b"), func(o *metav1.ObjectMeta) { o.ResourceVersion = "6" }, "[b]"},
		"its own object as it was":   {accountOf("b"), func(*metav1.ObjectMeta) {}, "[]"},
		"an object of others":        {accountOf("c"), func(o *metav1.ObjectMeta) { o.ResourceVersion = "6" }, "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newObserver()
				if enqueued := s.takeEnqueued(); len(enqueued) > 0 {
					t.Errorf("at first %q are enqueued", enqueued)
				}
				o := object()
				test.change(o)
				s.observe(test.id, o)
				if got := fmt.Sprint(s.takeEnqueued()); got != test.want {
					t.Errorf("%s are enqueued, want %s", got, test.want)
				}
			})
		})
	}
}

func TestObservations_WhatIsGoneAndWhatMayBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newObserver()
		s.observe(accountOf("a"), nil)
		if got := fmt.Sprint(s.takeEnqueued()); got != "[a]" || !s.isStale("a") || s.isStale("b") {
			t.Errorf("%s are enqueued for an object that is gone", got)
		}
		s.reconcile("a", object())
		if s.isStale("a") {
			t.Error("what was told before a look is news after it")
		}
		s.markLost()
		if got := fmt.Sprint(s.takeEnqueued()); got != "[a b]" {
			t.Errorf("%s are enqueued after a watch that has missed something", got)
		}
		s.reconcile("a", object())
		s.drop("b")
		s.observe(accountOf("b"), nil)
		if s.isStale("a") || len(s.all) != 1 || len(s.trackers) != 2 {
			t.Errorf("of a Klusterlet that is gone is left: %v, %v", s.all, s.trackers)
		}
	})
}

// TestObservations_DuringAReconcile: events of a reconcile's own writes often arrive before the response is read. What others write during a reconcile causes
// another one when it ends, and events from before the first read of an object are not lost.
func TestObservations_DuringAReconcile(t *testing.T) {
	version := func(v string) *metav1.ObjectMeta {
		o := object()
		o.ResourceVersion = v
		return o
	}
	synctest.Test(t, func(t *testing.T) {
		s := newObserver()
		for written, news := range map[string]bool{"7": false, "6": true} {
			s.begin("a")
			s.observe(accountOf("a"), version("7"))
			time.Sleep(time.Second)
			s.record("a", accountOf("a"), version(written))
			s.end("a")
			if s.isStale("a") != news {
				t.Errorf("7 is told and %s is seen: is it news? %t, want %t", written, !news, news)
			}
			if got := s.takeEnqueued(); (len(got) > 0) != news {
				t.Errorf("7 is told and %s is seen: %s are enqueued", written, got)
			}
		}
		// The response is read a little later than the event.
		s.reconcile("a", version("8"))
		s.observe(accountOf("a"), version("9"))
		s.record("a", accountOf("a"), version("9"))
		if got := s.takeEnqueued(); len(got) > 0 {
			t.Errorf("%s are enqueued by what they have written", got)
		}
		s.begin("c")
		s.track("c", "mark.c", []apply.ID{accountOf("c")})
		s.observe(accountOf("c"), version("1"))
		s.end("c")
		if fmt.Sprint(s.takeEnqueued()) != "[c]" {
			t.Error("what was told and never seen is lost")
		}
	})
}

// TestAttack_EventsAreBoundedInMemoryAndReconciles: a managed cluster may send any events at any rate, and objects of one Klusterlet on the own cluster may
// change all the time. Other Klusterlets are reconciled as soon as before.
func TestAttack_EventsAreBoundedInMemoryAndReconciles(t *testing.T) {
	own := (&Options{}).reconciler(t.Context(), nil, nil, nil, "").observations
	for name, test := range map[string]struct {
		burst       int
		interval    time.Duration
		least, most int
	}{
		"a managed cluster": {changeBurst, changeInterval, 15, 21},
		"the own cluster":   {own.burst, own.interval, 60, 71},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newObserver()
				s.observations = &observations{burst: test.burst, interval: test.interval, enqueue: s.enqueue}
				for _, name := range []string{"a", "b"} {
					s.reconcile(name, object())
				}
				for i := range 20_000 {
					o := object()
					o.ResourceVersion = fmt.Sprint(i)
					other := accountID
					other.Name = fmt.Sprint(i)
					s.observe(other, o)
					s.observe(accountOf("a"), o)
					if i%20 == 0 {
						time.Sleep(100 * time.Millisecond)
					}
					if i == 10_000 {
						s.observe(accountOf("b"), o)
						time.Sleep(time.Second)
						if !slices.Contains(s.allEnqueued(), "b") {
							t.Error("the events of one Klusterlet keep another one waiting")
						}
					}
				}
				if len(s.trackers) != 3 || len(s.all) != 2 {
					t.Errorf("%d objects of %d Klusterlets are remembered", len(s.trackers), len(s.all))
				}
				n := len(slices.DeleteFunc(s.allEnqueued(), func(name string) bool { return name != "a" }))
				if n < test.least || n > test.most {
					t.Errorf("100 seconds of events have enqueued %d times, want %d to %d", n, test.least, test.most)
				}
			})
		})
	}
}
