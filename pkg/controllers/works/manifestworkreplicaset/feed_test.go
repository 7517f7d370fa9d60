// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestworkreplicaset

import (
	"errors"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	workv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1alpha1"
)

// An object whose event causes a panic does not end the process, and the next one is handled.
func TestFeed_SurvivesPanic(t *testing.T) {
	bad := true
	w := feed(nil, func(*workv1.ManifestWork) []types.NamespacedName {
		if bad {
			panic("bad")
		}
		return []types.NamespacedName{key}
	}, nothing)
	q := &requests{}
	w.handler.Create(t.Context(), event.CreateEvent{Object: &workv1.ManifestWork{}}, q)
	bad = false
	w.handler.Create(t.Context(), event.CreateEvent{Object: &workv1.ManifestWork{}}, q)
	if !slices.Equal(q.all, []reconcile.Request{{NamespacedName: key}}) {
		t.Error(q.all)
	}
}

// A set that is being deleted waits for a work that could not be deleted.
func TestDelete_WaitsForRefusedDelete(t *testing.T) {
	set := replicaSet("p")
	f := newFixture(t, set)
	f.decide("p", "c1", "c2")
	f.settle()
	f.refuse = func(effect string) error {
		if effect == "delete c1" {
			return apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("held"))
		}
		return nil
	}
	if err := f.client.Delete(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		f.tell()
		f.once()
	}
	f.set()
	if len(f.there()) != 1 {
		t.Errorf("%d works", len(f.there()))
	}
	f.refuse = nil
	f.settle()
	if err := f.client.Get(t.Context(), key, set); !apierrors.IsNotFound(err) || len(f.there()) > 0 {
		t.Error(err)
	}
}

// A change enqueues the sets that it can affect, and no others.
func TestFeed_EnqueuesSetsOfPlacement(t *testing.T) {
	f := newFixture(t, replicaSet("p", "q"))
	other := replicaSet("r")
	other.Name = "other"
	f.create(other)
	f.settle()
	d := decision("x", 0, "")
	f.create(d)
	f.tell()
	if len(f.queue.all) > 0 {
		t.Errorf("a placement of no set: %v", f.queue.all)
	}
	// The decision moves to another placement, which enqueues the sets of both.
	for _, to := range []string{"p", "r", "x"} {
		change(f, types.NamespacedName{Namespace: d.Namespace, Name: d.Name}, func(d *clusterv1beta1.PlacementDecision) { d.Labels[clusterv1beta1.PlacementLabel] = to })
		f.tell()
		var got []string
		for _, r := range f.queue.all {
			got = append(got, r.Name)
		}
		f.queue.all = nil
		slices.Sort(got)
		if want := map[string][]string{"p": {"web"}, "r": {"other", "web"}, "x": {"other"}}[to]; !slices.Equal(got, want) {
			t.Errorf("of %s: %v, want %v", to, got, want)
		}
	}
	f.create(&workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "theirs"}})
	f.tell()
	if len(f.queue.all) > 0 {
		t.Errorf("a work of no set: %v", f.queue.all)
	}
	if sets := f.process.works.setsOf(types.NamespacedName{Namespace: "elsewhere", Name: "p"}); len(sets) > 0 {
		t.Errorf("a placement of another namespace: %v", sets)
	}
}

// A set rests after a round, in proportion to the time that the round took without the writes of works.
func TestReconcile_RestsBetweenRounds(t *testing.T) {
	f := newFixture(t, replicaSet("p"))
	f.decide("p", "c1")
	f.each = func() { f.clock.SetTime(f.clock.Now().Add(time.Second)) }
	f.tell()
	f.once()
	if !slices.Equal(f.effects, []string{"mark ns", "create c1", "status ns"}) {
		t.Fatalf("written: %q", f.effects)
	}
	f.decide("p", "c1", "c2")
	request := reconcile.Request{NamespacedName: key}
	for _, want := range []time.Duration{2 * rests * time.Second, 2 * time.Second} {
		if result, err := f.process.Reconcile(t.Context(), request); err != nil || result.RequeueAfter != want || len(f.effects) != 3 {
			t.Fatalf("%v, %v after %q, want to rest for %s", result, err, f.effects, want)
		}
		f.clock.SetTime(f.clock.Now().Add(2 * (rests - 1) * time.Second))
	}
	f.expect("create c2")
}

// The watch may report a deletion before the response to the request arrives. The work is not recorded then: otherwise the set would wait for it
// forever.
func TestDelete_WatchBeforeResponse(t *testing.T) {
	set := replicaSet("p")
	set.Spec.CascadeDeletionPolicy = workv1alpha1.Foreground
	f := newFixture(t, set)
	f.decide("p", "c1", "c2")
	f.settle()
	f.each = f.tell
	if err := f.client.Delete(t.Context(), replicaSet("p")); err != nil {
		t.Fatal(err)
	}
	f.settle()
	if left := f.process.works.of(key); len(left) > 0 {
		t.Errorf("it remembers %d works that are gone", len(left))
	}
	if err := f.client.Get(t.Context(), key, &workv1alpha1.ManifestWorkReplicaSet{}); !apierrors.IsNotFound(err) {
		t.Errorf("the set is still there: %v", err)
	}
}
