// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placementscheduler

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	clusterv1beta2 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

func TestSchedule_WritesDecisionsAndStatus(t *testing.T) {
	f := newFixture(t, managed("c1", "a=b"), managed("c2", "a=b"), managed("c3"), place(-1))
	f.expect("create p-decision-1", "status of p-decision-1", "status of p")
	f.has("p-decision-1 0: c1 c2")
	d, p := &clusterv1beta1.PlacementDecision{}, f.placement()
	if err := f.client.Get(t.Context(), types.NamespacedName{Namespace: key.Namespace, Name: "p-decision-1"}, d); err != nil {
		t.Fatal(err)
	}
	if owner := metav1.GetControllerOf(d); owner == nil || owner.UID != p.UID || owner.Kind != "Placement" || owner.BlockOwnerDeletion != nil {
		t.Errorf("the owners are %v", d.OwnerReferences)
	}
	if !meta.IsStatusConditionTrue(p.Status.Conditions, "PlacementSatisfied") || !meta.IsStatusConditionFalse(p.Status.Conditions, "PlacementMisconfigured") ||
		p.Status.NumberOfSelectedClusters != 2 {
		t.Errorf("the status is %+v", p.Status)
	}
	if e := <-f.events.Events; !strings.HasPrefix(e, "Normal DecisionCreate ") {
		t.Errorf("the event is %q", e)
	}

	// A change without an effect writes nothing.
	f.label("c1", "a=b", "o=o")
	f.label("c3", "o=o")
	change(f, types.NamespacedName{Name: "c2"}, func(c *clusterv1.ManagedCluster) { c.Status.Version.Kubernetes = "v1.2.3" })
	f.expect()
	// A burst is one write.
	for i := range 20 {
		f.create(managed("d"+string(rune('a'+i)), "a=b"))
	}
	f.label("c1")
	f.expect("status of p-decision-1", "status of p")
	if clusters := f.clusters(); len(clusters) != 21 || clusters["c1"] {
		t.Errorf("the clusters are %v", clusters)
	}
}

// Only bindings that are not being deleted, and have the name of their set, count.
func TestSchedule_FollowsBindings(t *testing.T) {
	f := newFixture(t, managed("c1", "a=b"), place(-1))
	f.settle()
	f.has("p-decision-1 0: c1")
	change(f, types.NamespacedName{Namespace: "ns", Name: "s1"}, func(b *clusterv1beta2.ManagedClusterSetBinding) { b.Finalizers = []string{"example.com/hold"} })
	f.delete(binding("s1"))
	f.settle()
	f.has("p-decision-1 0:")
	other := binding("s1")
	other.Name = "s2"
	f.create(other)
	f.settle()
	f.has("p-decision-1 0:")
}

// The garbage collector deletes the decisions of a placement that is gone. If a new placement of the name comes before that, it adopts them.
func TestSchedule_AdoptsDecisions(t *testing.T) {
	f := newFixture(t, managed("c1", "a=b"), place(-1))
	f.settle()
	f.delete(place(-1))
	f.expect()
	f.has("p-decision-1 0: c1")
	f.create(place(-1))
	f.expect("labels of p-decision-1", "status of p")
	d := &clusterv1beta1.PlacementDecision{}
	name := types.NamespacedName{Namespace: key.Namespace, Name: "p-decision-1"}
	if err := f.client.Get(t.Context(), name, d); err != nil || len(d.OwnerReferences) != 1 || d.OwnerReferences[0].UID != f.placement().UID {
		t.Errorf("the owners are %v, %v", d.OwnerReferences, err)
	}

	// A decision without the label is in no reader's list. It gets its clusters before the label.
	change(f, name, func(d *clusterv1beta1.PlacementDecision) { d.Labels = map[string]string{"x": "y"} })
	f.label("c1")
	f.create(managed("c2", "a=b"))
	f.expect("status of p-decision-1", "labels of p-decision-1")
	f.has("p-decision-1 0: c2")
	// A forged decision is deleted.
	forged := d.DeepCopy()
	forged.ResourceVersion, forged.Name = "", "forged"
	f.create(forged)
	f.expect("delete forged")
}

// Between the two writes of a decision, readers see the later one of both groups.
func TestUpdate_ClusterStaysInDecisions(t *testing.T) {
	f := newFixture(t, append(many(101, "a=b", "group=g1"), managed("z", "a=b", "group=g2"), place(-1, "g1", "g2"))...)
	f.settle()
	if got := f.decisions()[1:]; !slices.Equal(got, []string{"p-decision-2 0: c100", "p-decision-3 1: z"}) {
		t.Fatalf("the decisions are %q", got)
	}
	f.each = func() {
		if all := f.decisions(); slices.Contains(all, "p-decision-2 0: z") {
			t.Errorf("z is seen in the first group: %q", all[1:])
		}
	}
	// The second decision moves to the second group, and back.
	f.label("c050")
	f.settle()
	if got := f.decisions()[1:]; !slices.Equal(got, []string{"p-decision-2 1: z"}) {
		t.Fatalf("the decisions are %q", got)
	}
	f.label("c050", "a=b", "group=g1")
	f.settle()
	if got := f.decisions()[1:]; !slices.Equal(got, []string{"p-decision-2 0: c050", "p-decision-3 1: z"}) {
		t.Fatalf("the decisions are %q", got)
	}
}

func TestConflict_RetriesWithBackoff(t *testing.T) {
	f := newFixture(t, managed("c1", "a=b"), place(-1))
	left := 3
	f.refuse = func(effect string) error {
		left--
		if left >= 0 {
			return apierrors.NewConflict(clusterv1beta1.Resource("placementdecisions"), effect, errors.New("changed"))
		}
		return nil
	}
	f.tell()
	if got := f.work(); !slices.Equal(got, []time.Duration{kit.FirstBackoff, 2 * kit.FirstBackoff, 4 * kit.FirstBackoff}) {
		t.Errorf("put off by %v", got)
	}
	f.has("p-decision-1 0: c1")

	// A user's write came first, and the watch reports it later.
	d := types.NamespacedName{Namespace: key.Namespace, Name: "p-decision-1"}
	f.settle()
	change(f, d, func(d *clusterv1beta1.PlacementDecision) { d.Annotations = map[string]string{"x": "y"} })
	theirs := f.untold
	f.untold = nil
	f.label("c1")
	f.tell()
	result, err := f.process.Reconcile(t.Context(), everything)
	if err != nil {
		t.Fatal(result, err)
	}
	for range 2 {
		result, err = f.process.Reconcile(t.Context(), request())
		if err != nil || result.RequeueAfter == 0 {
			t.Fatal(result, err)
		}
	}
	f.untold = theirs
	f.queue.Add(request())
	f.settle()
	f.has("p-decision-1 0:")
}

// A placement that cannot be written does not block others.
func TestError_DoesNotBlockOthers(t *testing.T) {
	q := place(-1)
	q.Name = "q"
	f := newFixture(t, managed("c1", "a=b"), place(-1), q)
	broken := true
	f.refuse = func(effect string) error {
		if broken && strings.HasSuffix(effect, " p-decision-1") {
			panic("a fault")
		}
		return nil
	}
	f.tell()
	if _, err := f.process.Reconcile(t.Context(), everything); err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() { _ = recover() }() // as controller-runtime does
		_, _ = f.process.Reconcile(t.Context(), request())
		t.Error("no panic")
	}()
	f.queue.all = slices.DeleteFunc(f.queue.all, func(r reconcile.Request) bool { return r == request() })
	f.settle()
	if !slices.Contains(f.effects, "status of q-decision-1") {
		t.Errorf("written: %q", f.effects)
	}
	broken = false
	f.queue.Add(request())
	f.settle()
	f.has("p-decision-1 0: c1")
}

// Nothing is written before everything is known that decisions depend on: placements would lose their clusters.
func TestStart_WaitsForCaches(t *testing.T) {
	f := newFixture(t, managed("c1", "a=b"), place(-1))
	f.settle()
	f.restart()
	known := f.untold
	synctest.Test(t, func(t *testing.T) {
		informers := &informertest.FakeInformers{Scheme: newScheme(t)}
		c, err := controller.NewUnmanaged(name, controller.Options{Reconciler: f.process, MaxConcurrentReconciles: workers, SkipNameValidation: new(true)})
		if err != nil {
			t.Fatal(err)
		}
		var clusters *controllertest.FakeInformer
		for _, w := range f.process.scheduler.watches() {
			gvks, _, err := newScheme(t).ObjectKinds(w.kind)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := informers.FakeInformerForKind(t.Context(), gvks[0]); err != nil {
				t.Fatal(err)
			}
			if _, ok := w.kind.(*clusterv1.ManagedCluster); ok {
				clusters = controllertest.NewFakeInformer()
				informers.InformersByGVK[gvks[0]] = clusters
			}
		}
		for _, s := range f.process.sources(informers) {
			if err := c.Watch(s); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Start(ctx) }()
		synctest.Wait()
		for _, e := range known {
			if _, ok := e.obj.(*clusterv1.ManagedCluster); ok {
				continue
			}
			informer, err := informers.FakeInformerFor(t.Context(), e.obj)
			if err != nil {
				t.Fatal(err)
			}
			informer.Add(e.obj)
		}
		f.effects = nil
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(f.effects) > 0 {
			t.Errorf("written: %q", f.effects)
		}
		for _, e := range known {
			if _, ok := e.obj.(*clusterv1.ManagedCluster); ok {
				clusters.Add(e.obj)
			}
		}
		clusters.Synced()
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(f.effects) > 0 {
			t.Errorf("written: %q", f.effects)
		}
		clusters.Add(managed("c2", "a=b"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if !slices.Equal(f.effects, []string{"status of p-decision-1", "status of p"}) {
			t.Errorf("written: %q", f.effects)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func request() reconcile.Request { return reconcile.Request{NamespacedName: key} }
