// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustersetstatus

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// queue is the worst possible queue: it merges nothing, so that the reconciler itself must do so.
type queue struct {
	*fixture
	after map[string]time.Time
}

// event reconciles a set at once, as each of its events may.
func (q *queue) event(set string) {
	q.t.Helper()
	delete(q.after, set)
	if wait := q.reconcile(set); wait > 0 {
		q.after[set] = q.clock.Now().Add(wait)
	}
}

// run advances the clock and reconciles what is due.
func (q *queue) run(d time.Duration) {
	q.t.Helper()
	q.advance(d)
	for set, at := range q.after {
		if !q.clock.Now().Before(at) {
			q.event(set)
		}
	}
}

func (q *queue) drain() {
	q.t.Helper()
	for len(q.after) > 0 {
		q.run(Interval / 10)
	}
}

// checkSpacing checks the intervals between the writes of one set.
func checkSpacing(t *testing.T, writes []time.Time) {
	t.Helper()
	for i := 1; i < len(writes); i++ {
		if gap := writes[i].Sub(writes[i-1]); gap < Spacing {
			t.Fatalf("writes %d and %d are %s apart, want at least %s", i-1, i, gap, Spacing)
		}
	}
}

func TestCoalescing_LimitsWritesOfManyJoins(t *testing.T) {
	const joins, duration = 10_000, 20 * time.Second
	q := &queue{fixture: newFixture(t, newSet("s", 1)), after: map[string]time.Time{}}
	for range joins {
		q.counts["s"]++
		q.event("s")
		q.run(duration / joins)
	}
	q.drain()
	checkSpacing(t, q.writesOf["s"])
	if most := int(duration/Spacing) + 2; len(q.writes) > most || len(q.writes) < most/2 {
		t.Errorf("%d writes in %s, want about one per %s", len(q.writes), duration, Spacing)
	}
	if got := q.conditions("s"); len(got) != 1 || got[0].Message != "10000 ManagedClusters selected" {
		t.Errorf("at the end the status is %v", got)
	}
}

func TestCoalescing_BurstIsOneWrite(t *testing.T) {
	q := &queue{fixture: newFixture(t, newSet("s", 1)), after: map[string]time.Time{}}
	for range 10_000 {
		q.counts["s"]++
		q.event("s")
	}
	q.drain()
	if len(q.writes) != 1 {
		t.Errorf("%d writes, want 1", len(q.writes))
	}
}

func TestCoalescing_RevertedCountIsNotWritten(t *testing.T) {
	before := selected(5, 1, metav1.NewTime(start))
	q := &queue{fixture: newFixture(t, newSet("s", 1, before)), after: map[string]time.Time{}}
	for _, n := range []int{6, 4, 5} {
		q.counts["s"] = n
		q.event("s")
		q.run(Interval / 4)
	}
	q.drain()
	if len(q.writes) != 0 {
		t.Errorf("%d writes, want none", len(q.writes))
	}
}

// Sets do not wait for each other, and each ends with its number of members, whatever happened in between.
func TestCoalescing_EverySetIsEventuallyWritten(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, name := range []string{"a", "b.c", "d"} {
		t.Run(name, func(t *testing.T) {
			q := &queue{
				fixture: newFixture(t, newSet(name, 1), newSet("other", 1)), after: map[string]time.Time{},
			}
			for range 2_000 {
				set := []string{name, "other"}[random.IntN(2)]
				q.counts[set] = random.IntN(4)
				q.event(set)
				q.run(time.Duration(random.IntN(int(Interval) / 2)))
			}
			q.drain()
			for _, set := range []string{name, "other"} {
				want := empty(1, metav1.Time{}).Message
				if n := q.counts[set]; n > 0 {
					want = fmt.Sprintf("%d ManagedClusters selected", n)
				}
				checkSpacing(t, q.writesOf[set])
				if got := q.conditions(set)[0].Message; got != want {
					t.Errorf("set %s ends with %q, want %q", set, got, want)
				}
			}
		})
	}
}

// While a write waits, events of its set cause no reconciliation; from the time at which the write is due, each event counts.
func TestCoalescing_WaitingSetIsNotEnqueuedAgain(t *testing.T) {
	f := newFixture(t, newSet("s", 1))
	if f.waits("s") {
		t.Error("a set that nobody has looked at waits")
	}
	f.counts["s"] = 1
	f.reconcile("s")
	if !f.waits("s") || f.waits("other") {
		t.Errorf("after the first look, s waits: %t, another set: %t", f.waits("s"), f.waits("other"))
	}
	f.advance(Interval)
	if f.waits("s") {
		t.Error("a set whose write is due is not asked for")
	}
	f.reconcile("s")
	if len(f.writes) != 1 || f.waits("s") {
		t.Errorf("%d writes; after it the set waits: %t", len(f.writes), f.waits("s"))
	}
}

// An event during a reconciliation may be too late for it, so it must cause another.
func TestCoalescing_EventDuringReconcileIsRetained(t *testing.T) {
	f := newFixture(t, newSet("s", 1, empty(1, metav1.NewTime(start))))
	f.counts["s"] = 1
	f.reconcile("s")
	if !f.waits("s") {
		t.Fatal("no write waits")
	}
	// The member has left again when the next reconciliation begins, and another joins right after that has counted.
	looked := false
	f.count = func(string) int {
		looked = true
		if f.waits("s") {
			t.Error("an event would be dropped while the set is being looked at")
		}
		return 0
	}
	f.reconcile("s")
	if !looked || f.waits("s") {
		t.Errorf("looked: %t; a set that is up to date waits: %t", looked, f.waits("s"))
	}
}
