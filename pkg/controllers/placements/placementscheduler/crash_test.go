// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placementscheduler

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
)

// A process may be killed after any write. The next one reaches the same result, and no reader misses a cluster that is chosen before and after.
func TestKilled_AfterAnyWriteNextProcessContinues(t *testing.T) {
	for name, test := range map[string]struct {
		objects []client.Object
		do      func(f *fixture)
	}{
		"the first time": {objects: append(many(150, "a=b"), place(120)), do: func(*fixture) {}},
		"others come": {
			objects: append(many(150, "a=b"), place(-1)),
			do: func(f *fixture) {
				f.create(managed("b1", "a=b"))
				for _, name := range []string{"c000", "c001", "c120"} {
					f.label(name)
				}
			},
		},
		"groups exchange clusters": {
			objects: []client.Object{managed("c1", "a=b", "group=g1"), managed("c2", "a=b", "group=g2"), place(-1, "g1", "g2")},
			do: func(f *fixture) {
				f.label("c1", "a=b", "group=g2")
				f.label("c2", "a=b", "group=g1")
			},
		},
		"a group comes before the others": {
			objects: []client.Object{managed("c1", "a=b", "group=g1"), managed("c2", "a=b", "group=g2"), place(-1, "g1", "g2")},
			do: func(f *fixture) {
				change(f, key, func(p *clusterv1beta1.Placement) {
					p.Spec.DecisionStrategy = place(-1, "g2", "g1").Spec.DecisionStrategy
					p.Generation++
				})
			},
		},
		"fewer": {
			objects: append(many(250, "a=b"), place(-1)),
			do: func(f *fixture) {
				change(f, key, func(p *clusterv1beta1.Placement) { p.Spec.NumberOfClusters = new(int32(3)); p.Generation++ })
			},
		},
		"another placement of the name": {
			objects: []client.Object{managed("c1", "a=b"), place(-1)},
			do: func(f *fixture) {
				f.delete(place(-1))
				f.create(place(-1))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			begin := func() *fixture {
				f := newFixture(t, test.objects...)
				if name != "the first time" {
					f.settle()
				}
				return f
			}
			whole := begin()
			before := whole.clusters()
			test.do(whole)
			writes := len(whole.settle())
			want, after := whole.decisions(), whole.clusters()
			if writes < 2 {
				t.Fatalf("only %d writes", writes)
			}
			for n := 1; n <= writes; n++ {
				f := begin()
				test.do(f)
				f.each = func() { stays(f, before, after, "a moment") }
				f.killAfter = n
				done := slices.Clone(f.settle())
				if !f.dead {
					t.Fatalf("%d writes, and not killed: %q", n, done)
				}
				f.restart()
				f.settle()
				if diff := cmp.Diff(want, f.decisions()); diff != "" {
					t.Errorf("killed after %q (-want +got):\n%s", done, diff)
				}
				if p := f.placement(); p.Status.NumberOfSelectedClusters != int32(len(after)) || len(p.Status.Conditions) != 2 {
					t.Errorf("killed after %q: status %+v", done, p.Status)
				}
				f.expect()
			}
		})
	}
}

// A process that starts keeps all clusters, and writes nothing that is up to date.
func TestRestart_WritesNothing(t *testing.T) {
	f := newFixture(t, append(many(150, "a=b"), place(-1, "g1"))...)
	f.settle()
	before := maps.Clone(f.clusters())
	f.restart()
	f.expect()
	if !maps.Equal(before, f.clusters()) || len(before) != 150 {
		t.Error("clusters are lost")
	}
}

// A stale watch causes no second write.
func TestLag_NoDuplicateWrite(t *testing.T) {
	f := newFixture(t, managed("c1", "a=b"), place(1))
	f.tell()
	f.work()
	if want := []string{"create p-decision-1", "status of p-decision-1", "status of p"}; !slices.Equal(f.effects, want) {
		t.Fatalf("written: %q", f.effects)
	}
	// The events of the writes are still pending, and there is something to do.
	own := f.untold
	f.untold = nil
	f.label("c1")
	f.create(managed("c2", "a=b"))
	f.tell()
	f.effects = nil
	f.work()
	if want := []string{"status of p-decision-1"}; !slices.Equal(f.effects, want) {
		t.Fatalf("written: %q, want %q", f.effects, want)
	}
	f.has("p-decision-1 0: c2")
	f.untold = append(own, f.untold...)
	f.expect()
	f.has("p-decision-1 0: c2")
	if len(f.process.scheduler.unseenDecisions)+len(f.process.scheduler.unseenPlacements) > 0 {
		t.Error("not seen:", f.process.scheduler.unseenDecisions, f.process.scheduler.unseenPlacements)
	}

	// The same with a decision that is deleted, and whose earlier version is reported.
	f.delete(place(1))
	f.expect()
	f.create(place(-1))
	f.create(many(150, "a=b")...)
	f.settle()
	f.delete(managed("c149"))
	for i := range 60 {
		f.delete(many(150)[i])
	}
	f.tell()
	f.effects = nil
	f.work()
	if !slices.Contains(f.effects, "delete p-decision-2") {
		t.Fatalf("written: %q", f.effects)
	}
	f.expect()
}

// A write that no watch ever reports is looked up after maxUnseen.
func TestLag_UnobservedWrite(t *testing.T) {
	f := newFixture(t, managed("c1", "a=b"), place(1))
	f.tell()
	f.work()
	// The watch of decisions restarts in between.
	ofDecision := func(e told) bool { _, ok := e.obj.(*clusterv1beta1.PlacementDecision); return ok }
	f.untold = slices.DeleteFunc(f.untold, ofDecision)
	d := &clusterv1beta1.PlacementDecision{}
	if err := f.client.Get(t.Context(), types.NamespacedName{Namespace: key.Namespace, Name: "p-decision-1"}, d); err != nil {
		t.Fatal(err)
	}
	f.delete(d)
	f.untold = slices.DeleteFunc(f.untold, ofDecision)
	f.expect()
	f.queue.Add(everything)
	if result, err := f.process.Reconcile(t.Context(), everything); err != nil || result.RequeueAfter != maxUnseen {
		t.Fatal(result, err)
	}
	f.clock.SetTime(start.Add(maxUnseen))
	f.settle()
	f.has("p-decision-1 0: c1")
	f.label("c1")
	f.settle()
	f.has("p-decision-1 0:")
}
