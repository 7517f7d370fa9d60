// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestworkreplicaset

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/apis/duration"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	workv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1alpha1"
	"github.com/clusterhub/clusterhub/test/sample"
)

// TestKilled_AfterAnyWriteNextProcessContinues verifies that after a process is killed after any write, the next one reaches the same result, and
// that there are never more works in progress than allowed.
func TestKilled_AfterAnyWriteNextProcessContinues(t *testing.T) {
	soak := func(p *clusterv1alpha1.RolloutProgressive) {
		p.MinSuccessTime = duration.Duration{Duration: time.Second}
	}
	for name, test := range map[string]struct {
		set *workv1alpha1.ManifestWorkReplicaSet
		do  func(*fixture)
	}{
		"the first time": {set: progressive(replicaSet("p"), 2), do: func(*fixture) {}},
		"another template": {set: progressive(replicaSet("p"), 2, soak), do: func(f *fixture) {
			f.retext("two")
		}},
		"other clusters, and another placement": {set: progressive(replicaSet("p"), 2), do: func(f *fixture) {
			f.decide("p", "c3", "c4", "c5", "c6")
			f.decide("q", "c1", "c9")
			change(f, key, func(set *workv1alpha1.ManifestWorkReplicaSet) {
				set.Spec.PlacementRefs = append(set.Spec.PlacementRefs, workv1alpha1.LocalPlacementReference{Name: "q"})
			})
		}},
		"deletion": {set: replicaSet("p"), do: func(f *fixture) {
			if err := f.client.Delete(f.Context(), f.set()); err != nil {
				f.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			// run has the agents report after each step, until nothing is left to do.
			run := func(f *fixture) {
				for range 20 {
					f.settle()
					if f.dead {
						return
					}
					f.report("Applied Available", append(names(6), "c9")...)
					f.pass(time.Second)
				}
			}
			begin := func() *fixture {
				f := newFixture(t, test.set.DeepCopy())
				f.decide("p", names(5)...)
				if name != "the first time" {
					run(f)
				}
				return f
			}
			whole := begin()
			test.do(whole)
			writes := 0
			whole.each = func() { writes++ }
			run(whole)
			want := whole.texts()
			if writes < 6 {
				t.Fatalf("only %d writes", writes)
			}
			for _, n := range sample.Third(t, writes) {
				n++
				f := begin()
				test.do(f)
				f.each = func() { f.checkConcurrency(test.set) }
				f.killAfter = n
				run(f)
				if !f.dead {
					t.Fatalf("%d writes, and not killed", n)
				}
				f.restart()
				run(f)
				if diff := cmp.Diff(want, f.texts()); diff != "" {
					t.Errorf("killed after %d (-want +got):\n%s", n, diff)
				}
				f.effects = nil
				f.restart()
				f.settle()
				if len(f.effects) > 0 {
					t.Errorf("killed after %d: then written %q", n, f.effects)
				}
			}
		})
	}
}

// checkConcurrency counts the works of the current template on which the agents have not reported.
func (f *fixture) checkConcurrency(set *workv1alpha1.ManifestWorkReplicaSet) {
	f.Helper()
	p := set.Spec.PlacementRefs[0].RolloutStrategy.Progressive
	now := &workv1alpha1.ManifestWorkReplicaSet{}
	if p == nil || f.client.Get(f.Context(), key, now) != nil {
		return
	}
	busy := 0
	for _, w := range f.there() {
		if w.Labels["work.open-cluster-management.io/placementname"] != "p" || digest(&w.Spec) != digest(&now.Spec.ManifestWorkTemplate) {
			continue
		}
		if e := newEntry(slimmed(&w)); e.observation.Waits != "" {
			busy++
		}
	}
	if busy > p.MaxConcurrency.IntValue() {
		f.Errorf("%d in progress after %q", busy, f.effects)
	}
}

func slimmed(w *workv1.ManifestWork) *workv1.ManifestWork {
	slim(w)
	return w
}

// TestLag verifies that a stale watch causes no second work for a cluster, and no more works in progress than allowed.
func TestLag(t *testing.T) {
	f := newFixture(t, progressive(replicaSet("p"), 2))
	f.each = func() { f.checkConcurrency(progressive(replicaSet("p"), 2)) }
	f.decide("p", names(6)...)
	f.tell()
	for range 10 { // rounds without events of watches, except those of the set
		f.pass(0)
		f.once()
	}
	if got := f.works(); !slices.Equal(got, []string{"create c1", "create c2"}) {
		t.Fatalf("written: %q", got)
	}
	// The events of these writes are still pending, and a new process has seen none of them.
	own := f.untold
	f.process = newReconciler(f.process.client, f.events, f.clock)
	f.untold = nil
	f.effects = nil
	f.process.works.setReplicaSet(key, []string{"p"})
	for range 10 {
		f.pass(0)
		f.once()
	}
	if len(f.works()) > 0 || len(f.there()) != 2 {
		t.Fatalf("written: %q", f.works())
	}
	f.untold = own
	f.expect()
	f.report("Applied Available", "c1", "c2")
	f.expect("create c3", "create c4")
}

// A change by another client is not overwritten unseen.
func TestLag_UpdatesKnownVersion(t *testing.T) {
	f := newFixture(t, replicaSet("p"))
	f.decide("p", "c1")
	f.settle()
	change(f, workKey("c1", "p"), func(w *workv1.ManifestWork) { w.Annotations["theirs"] = "a" })
	unseen := f.untold
	f.untold, f.effects = nil, nil
	f.retext("two")
	f.tell()
	f.once()
	if len(f.works()) > 0 {
		t.Fatalf("written: %q", f.works())
	}
	f.untold = append(unseen, f.untold...)
	f.expect("update c1")
	if w := f.there()[0]; w.Annotations["theirs"] != "a" {
		t.Error("overwritten")
	}
}

// A written work that no watch ever reports is looked up after maxUnseen.
func TestLag_UnobservedWrite(t *testing.T) {
	f := newFixture(t, replicaSet("p"))
	f.decide("p", "c1")
	f.tell()
	f.once()
	if err := f.client.Delete(t.Context(), &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: workName(key, "p")}}); err != nil {
		t.Fatal(err)
	}
	f.untold = slices.DeleteFunc(f.untold, func(e told) bool { _, ok := e.obj.(*workv1.ManifestWork); return ok })
	f.expect()
	f.pass(maxUnseen)
	f.expect("create c1")
}

// The cost of a round for 10,000 clusters depends on what changes, and not on the number of clusters.
func TestCost_OfTenThousandClusters(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while")
	}
	const n = 10_000
	f := newFixture(t, replicaSet("p"))
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("c%05d", i)
	}
	for i := range 100 {
		f.decideGroup(decision("p", i, ""), all[i*100:(i+1)*100]...)
	}
	f.settle()
	if len(f.works()) != n {
		t.Fatalf("%d writes", len(f.works()))
	}
	statuses := len(f.effects) - n
	if most := 2 * n / maxWrites; statuses > most {
		t.Errorf("%d writes of the status and the set, want %d at most", statuses, most)
	}
	if len(f.reviews) > 3 {
		t.Errorf("%d questions", len(f.reviews))
	}
	f.lists = 0
	f.report1("Applied Available", all[0])
	f.settle()
	if len(f.works()) > 0 || f.lists > 4 {
		t.Errorf("one status: written %q, %d lists", f.works(), f.lists)
	}
	if s := f.set().Status.Summary; s.Applied != 1 || s.Total != n || s.Updated != n || s.DesiredTotal != n {
		t.Errorf("%+v", s)
	}
	f.decideGroup(decision("p", 0, ""), all[1:100]...)
	f.expect("delete " + all[0])
}
