// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placementscheduler

import (
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterhub/clusterhub/test/await"
)

// A round with CEL that takes long blocks neither the watches nor the results of the previous round.
func TestRound_DoesNotBlockWatchesOrWorkers(t *testing.T) {
	f := newFixture(t, managed("c1", "a=b"), place(-1))
	f.tell()
	if _, err := f.process.Reconcile(t.Context(), everything); err != nil {
		t.Fatal(err)
	}
	f.create(managed("c2", "a=b"))

	f.process.scheduler.mu.Lock() // the next round has begun
	done := make(chan error)
	go func() {
		f.tell()
		_, err := f.process.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(await.Limit):
		t.Error("they wait for the round")
	}
	if len(f.effects) == 0 {
		t.Error("nothing was written")
	}
	f.process.scheduler.mu.Unlock()

	f.settle()
	f.has("p-decision-1 0: c1 c2")
}

// Concurrent changes during rounds are all processed.
func TestInbox_LosesNoEvents(t *testing.T) {
	f := newFixture(t, place(-1))
	f.settle()
	handler, told := f.process.scheduler.watches()[4].handler, []string{"a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8"}
	q := &nowhere{}
	f.process.queue = q
	var group sync.WaitGroup
	for _, name := range told {
		group.Go(func() {
			for _, labels := range []string{"a=1", "a=2", "a=3"} {
				handler.Update(t.Context(), event.UpdateEvent{ObjectOld: managed(name), ObjectNew: managed(name, labels)}, q)
			}
		})
		group.Go(func() { f.process.round(t.Context()) })
	}
	group.Wait()
	f.process.scheduler.enter()
	defer f.process.scheduler.mu.Unlock()
	clusters := f.process.scheduler.hub.State(f.process.scheduler.hub.Placement(key), start).Clusters
	for _, name := range told {
		if c := clusters.Cluster(name); c == nil || c.Object.Labels["a"] != "3" {
			t.Errorf("%s is %v", name, c)
		}
	}
}

// nowhere is a queue that drops everything.
type nowhere struct{ queue }

func (*nowhere) Add(reconcile.Request) {}

func (*nowhere) AddAfter(reconcile.Request, time.Duration) {}
