// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestworkreplicaset

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	clusterv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/apis/duration"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	workv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1alpha1"
)

// W068, W069.
func TestAll_WorkForEachChosenCluster(t *testing.T) {
	f := newFixture(t, replicaSet("p"))
	f.decide("p", "c1", "c2", "c3")
	f.expect("create c1", "create c2", "create c3")
	for _, w := range f.there() {
		want := map[string]string{
			"app": "web", work.ReplicaSetLabel: "ns.web", work.PlacementLabel: "p", hashLabel: owner(key),
		}
		if !hasAll(w.Labels, want) || len(w.Labels) != len(want) || w.Name != workName(key, "p") || w.Annotations[ownerAnnotation] != "ns/web" {
			t.Errorf("%s: %v %v", w.Name, w.Labels, w.Annotations)
		}
	}
	set := f.set()
	if s := set.Status.Summary; s.Total != 3 || s.DesiredTotal != 3 || s.Updated != 3 || s.Applied != 0 {
		t.Errorf("summary %+v", s)
	}
	if !slices.Equal(set.Finalizers, []string{work.ReplicaSetFinalizer}) {
		t.Errorf("finalizers %v", set.Finalizers)
	}
	f.is(verified, "True", "AsExpected")
	f.is(rolledOut, "False", "Progressing")
	f.is(applied, "False", "Processing")
	f.report("Applied Available", "c1", "c2")
	f.expect()
	if c := f.condition(rolledOut); c.Message != "2 of 3 clusters have succeeded; 1 in progress: c3 (waits to be applied)" {
		t.Error(c.Message)
	}

	f.decide("p", "c1", "c2")
	f.expect("delete c3")
	if s := f.set().Status; s.Summary.Total != 2 || s.PlacementsSummary[0].AvailableDecisionGroups != "1 (2 / 2 clusters applied)" {
		t.Errorf("status %+v", s)
	}
	f.is(rolledOut, "True", "Complete")
	f.is(applied, "True", "AsExpected")
	f.effects = nil
	f.pass(time.Hour)
	f.settle()
	if len(f.effects) > 0 {
		t.Errorf("nothing has changed, and written: %q", f.effects)
	}
}

// W070.
func TestRules(t *testing.T) {
	f := newFixture(t, replicaSet("p"))
	f.decide("p", "c1")
	f.settle()
	f.report("Applied Available !Progressing", "c1")
	f.settle()
	f.is(rolledOut, "True", "Complete")
	if s := f.set().Status.Summary; s.Applied != 1 || s.Available != 1 {
		t.Errorf("summary %+v", s)
	}
	f.report("Progressing Degraded", "c1")
	f.settle()
	f.is(rolledOut, "False", "Progressing")
	f.is(applied, "False", "NotAsExpected")
}

// W071.
func TestProgressive_BatchesInOrder(t *testing.T) {
	f := newFixture(t, progressive(replicaSet("p"), 2))
	f.decide("p", names(6)...)
	f.expect("create c1", "create c2")
	f.report("Applied", "c1", "c2")
	f.expect()
	f.report("!Progressing", "c1", "c2")
	f.expect("create c3", "create c4")
	f.is(rolledOut, "False", "Progressing")
	f.report("Applied !Progressing", "c3")
	f.expect("create c5")
	f.report("Applied !Progressing", "c4", "c5")
	f.expect("create c6")
	f.is(rolledOut, "False", "Progressing")
	f.report("Applied !Progressing", "c6")
	f.expect()
	f.is(rolledOut, "True", "Complete")

	f.retext("two")
	f.expect("update c1", "update c2")
	if got := f.texts(); !slices.Equal(got, []string{"c1 two", "c2 two", "c3 one", "c4 one", "c5 one", "c6 one"}) {
		t.Errorf("%q", got)
	}
	if s := f.set().Status.Summary; s.Updated != 2 || s.Applied != 4 {
		t.Errorf("summary %+v", s)
	}
	// A cluster that is no longer chosen loses its work, even if that is not up to date.
	f.decide("p", "c1", "c2", "c3")
	f.expect("delete c4", "delete c5", "delete c6")
}

// W072, W073.
func TestProgressive_Failures(t *testing.T) {
	f := newFixture(t, progressive(replicaSet("p"), 2, func(p *clusterv1alpha1.RolloutProgressive) { p.MaxFailures = intstr.FromInt(1) }))
	f.decide("p", names(4)...)
	f.expect("create c1", "create c2")
	f.report("Applied Progressing Degraded", "c1", "c2")
	f.expect()
	f.is(rolledOut, "False", "Progressing")

	f = newFixture(t, progressive(replicaSet("p"), 1, func(p *clusterv1alpha1.RolloutProgressive) {
		p.MaxFailures, p.ProgressDeadline = intstr.FromInt(1), "5s"
	}))
	f.decide("p", "c1", "c2")
	f.expect("create c1")
	f.report("Applied Progressing Degraded", "c1")
	f.expect()
	f.pass(5 * time.Second)
	f.expect("create c2")
	f.is(rolledOut, "False", "Progressing")
}

func TestProgressive_SoakOfCurrentGeneration(t *testing.T) {
	f := newFixture(t, progressive(replicaSet("p"), 1, func(p *clusterv1alpha1.RolloutProgressive) {
		p.MinSuccessTime = duration.Duration{Duration: time.Minute}
	}))
	f.decide("p", "c1", "c2")
	f.expect("create c1")
	f.report("Applied Available", "c1")
	f.expect("mark c1")
	f.pass(50 * time.Second)
	f.expect()
	f.restart() // a new process knows it, too
	f.expect()
	f.pass(10 * time.Second)
	f.expect("create c2")
	f.report("Applied Available", "c2")
	f.pass(2 * time.Minute)
	f.settle()
	// The conditions stay True, so that their transition times are old.
	f.retext("two")
	f.expect("update c1")
	f.report("Applied Available", "c1")
	f.expect("mark c1")
	f.pass(50 * time.Second)
	f.expect()
	f.pass(10 * time.Second)
	f.expect("update c2")
}

// W076, W077.
func TestPlacements_MissingOnesDoNotAffectOthers(t *testing.T) {
	f := newFixture(t, replicaSet("no", "p"))
	f.decide("p", "c1")
	f.expect("create c1")
	f.is(verified, "False", "PlacementDecisionNotFound")
	f.create(placement("no"))
	f.expect()
	f.is(verified, "False", "PlacementDecisionEmpty")
	f.decide("no", "c1", "c2")
	f.expect("create c1", "create c2")
	f.is(verified, "True", "AsExpected")

	// Deleting a placement by mistake does not delete the works.
	if err := f.client.Delete(t.Context(), placement("p")); err != nil {
		t.Fatal(err)
	}
	if err := f.client.Delete(t.Context(), decision("p", 0, "")); err != nil {
		t.Fatal(err)
	}
	f.expect()
	f.is(verified, "False", "PlacementDecisionNotFound")
	// A placement that the set does not name any more loses its works.
	change(f, key, func(set *workv1alpha1.ManifestWorkReplicaSet) { set.Spec.PlacementRefs = set.Spec.PlacementRefs[:1] })
	f.expect("delete c1")

	f = newFixture(t, replicaSet("p"))
	f.decide("p")
	f.expect()
	f.is(applied, "False", "PlacementDecisionEmpty")
	f.is(verified, "False", "PlacementDecisionEmpty")
}

func TestGroups_MandatoryFirst(t *testing.T) {
	f := newFixture(t, progressive(replicaSet("p"), 5, func(p *clusterv1alpha1.RolloutProgressive) {
		p.MandatoryDecisionGroups.MandatoryDecisionGroups = []clusterv1alpha1.MandatoryDecisionGroup{{GroupName: "canary"}}
	}))
	f.decide("p", "a1", "a2")
	f.expect()
	f.decideGroup(decision("p", 1, "canary"), "c1")
	f.expect("create c1")
	f.report("Applied Available", "c1")
	f.expect("create a1", "create a2")
}

// Works of the upstream controller are adopted; of two works for a cluster one stays.
func TestTakeOver(t *testing.T) {
	theirs := func(name string, age time.Duration) *workv1.ManifestWork {
		return &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
			Namespace: "c1", Name: name, CreationTimestamp: metav1.NewTime(start.Add(-age)), Finalizers: []string{workv1.ManifestWorkFinalizer},
			Labels: map[string]string{work.ReplicaSetLabel: "ns.web", work.PlacementLabel: "p"},
		}, Spec: template("one")}
	}
	f := newFixture(t, theirs("web-abcde", time.Hour), theirs("web-fghij", time.Minute), replicaSet("p"))
	f.decide("p", "c1", "c2")
	f.expect("delete c1", "create c2", "mark c1")
	for _, w := range f.there() {
		if w.Name == "web-abcde" && (w.Labels[hashLabel] == "" || w.Annotations[writtenAnnotation] == "" || !w.DeletionTimestamp.IsZero()) {
			t.Errorf("%+v", w.ObjectMeta)
		}
		if w.Name == "web-fghij" && w.DeletionTimestamp.IsZero() {
			t.Error("both are there")
		}
	}
	if s := f.set().Status.Summary; s.Total != 2 {
		t.Errorf("summary %+v", s)
	}
	f.retext("two")
	f.expect("update c1", "update c2")
}

// A work with the label of the set, but without that of a placement, was labelled by mistake and does not belong to the set.
func TestTakeOver_IgnoresWorkWithoutPlacement(t *testing.T) {
	f := newFixture(t, replicaSet("p"), &workv1.ManifestWork{
		ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "theirs", Labels: map[string]string{work.ReplicaSetLabel: "ns.web"}}, Spec: template("theirs"),
	})
	f.decide("p", "c2")
	f.expect("create c2")
	if got := f.texts(); !slices.Equal(got, []string{"c1 theirs", "c2 one"}) {
		t.Errorf("%q", got)
	}
}

func TestUpdate_ReplacesSpec(t *testing.T) {
	set := replicaSet("p")
	set.Spec.ManifestWorkTemplate.DeleteOption = &workv1.DeleteOption{SelectivelyOrphan: &workv1.SelectivelyOrphan{OrphaningRules: []workv1.OrphaningRule{{Resource: "a"}}}}
	set.Spec.ManifestWorkTemplate.Executor = &workv1.ManifestWorkExecutor{Subject: workv1.ManifestWorkExecutorSubject{
		Type: workv1.ExecutorSubjectTypeServiceAccount, ServiceAccount: &workv1.ManifestWorkSubjectServiceAccount{Namespace: "a", Name: "b"},
	}}
	f := newFixture(t, set)
	f.decide("p", "c1")
	f.settle()
	f.retext("two")
	f.expect("update c1")
	if w := f.there()[0]; w.Spec.DeleteOption != nil || w.Spec.Executor != nil || w.Annotations[digestAnnotation] != "" {
		t.Errorf("%+v", w)
	}
	// Another client changes the work.
	change(f, workKey("c1", "p"), func(w *workv1.ManifestWork) { w.Spec = template("three") })
	f.expect("update c1")
	if got := f.texts(); !slices.Equal(got, []string{"c1 two"}) {
		t.Errorf("%q", got)
	}
	// A new label of the set is applied to its works.
	change(f, key, func(set *workv1alpha1.ManifestWorkReplicaSet) { set.Labels["a"] = "b" })
	f.expect("mark c1")
	if f.there()[0].Labels["a"] != "b" {
		t.Error("not labelled")
	}
}

// A server that sets defaults stores a different spec than the template. The controller does not write it again and again.
func TestUpdate_ConvergesWithDefaults(t *testing.T) {
	f := newFixture(t, replicaSet("p"))
	f.defaults = func(w *workv1.ManifestWork) {
		w.Spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeForeground}
	}
	f.decide("p", "c1")
	f.expect("create c1")
	f.retext("two")
	f.expect("update c1")
	// Only a process that has not written the work yet writes it once more.
	f.restart()
	f.expect("update c1")
	f.expect()
	if s := f.set().Status.Summary; s.Updated != 1 {
		t.Errorf("%+v", s)
	}
}

// A work of another owner is not changed, and a cluster that refuses a work does not block others.
func TestRefusals_DoNotBlockOthers(t *testing.T) {
	f := newFixture(t, progressive(replicaSet("p"), 1), &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: workName(key, "p")}, Spec: template("theirs")})
	f.refuse = func(effect string) error {
		if effect == "create c2" {
			return apierrors.NewForbidden(schema.GroupResource{}, "", fmt.Errorf("quota"))
		}
		return nil
	}
	f.decide("p", "c1", "c2", "c3")
	f.expect("create c3")
	if got := f.texts(); !slices.Equal(got, []string{"c1 theirs", "c3 one"}) {
		t.Errorf("%q", got)
	}
	f.is(applied, "False", "NotAsExpected")
	if c := f.condition(applied); !strings.Contains(c.Message, "delete it") || !strings.Contains(c.Message, "quota") {
		t.Error(c.Message)
	}
	f.refuse = nil
	f.report("Applied Available", "c3")
	f.pass(time.Minute)
	f.expect("create c2")
}

func TestDelete(t *testing.T) {
	for policy, waits := range map[workv1alpha1.CascadeDeletionPolicy]bool{workv1alpha1.Background: false, workv1alpha1.Foreground: true, "": false} {
		set := replicaSet("p")
		set.Spec.CascadeDeletionPolicy = policy
		other := replicaSet("p")
		other.Name = "other"
		f := newFixture(t, set, other)
		f.decide("p", "c1", "c2")
		f.settle()
		change(f, workKey("c1", "p"), func(w *workv1.ManifestWork) { w.Finalizers = []string{workv1.ManifestWorkFinalizer} })
		f.settle()
		if err := f.client.Delete(t.Context(), set); err != nil {
			t.Fatal(err)
		}
		got := f.settle()
		slices.Sort(got)
		if !slices.Equal(got, []string{"delete c1", "delete c2"}) {
			t.Errorf("%s: written %q", policy, got)
		}
		err := f.client.Get(t.Context(), key, set)
		if there := err == nil; there != waits {
			t.Errorf("%s: %v", policy, err)
		}
		change(f, workKey("c1", "p"), func(w *workv1.ManifestWork) { w.Finalizers = nil })
		f.expect()
		if err := f.client.Get(t.Context(), key, set); !apierrors.IsNotFound(err) {
			t.Errorf("%s: %v", policy, err)
		}
		if len(f.there()) != 2 {
			t.Errorf("%d works of the other set", len(f.there()))
		}
	}
}

// A work that is being deleted is replaced by a new one when it is gone.
func TestDeletingWork_IsReplaced(t *testing.T) {
	f := newFixture(t, replicaSet("p"))
	f.decide("p", "c1")
	f.settle()
	change(f, workKey("c1", "p"), func(w *workv1.ManifestWork) { w.Finalizers = []string{workv1.ManifestWorkFinalizer} })
	f.decide("p")
	f.expect("delete c1")
	f.decide("p", "c1")
	f.expect()
	change(f, workKey("c1", "p"), func(w *workv1.ManifestWork) { w.Finalizers = nil })
	f.expect("create c1")
}

func TestDecisions_UnknownClusters(t *testing.T) {
	f := newFixture(t, replicaSet("p"))
	f.decide("p", "c1", "", "A", "a/b", "../kube-system", strings.Repeat("a", 64))
	f.expect("create c1")
}

func TestWorkName(t *testing.T) {
	long := types.NamespacedName{Namespace: strings.Repeat("n", 63), Name: strings.Repeat("a.", 126) + "b"}
	name := workName(long, strings.Repeat("p", 63))
	if len(name) > work.MaxNameLength || name == workName(long, "p") || strings.Contains(name, ".-") {
		t.Error(name)
	}
	set := replicaSet("p")
	set.Namespace, set.Name = long.Namespace, long.Name
	if labels := labelsOf(set, "p"); labels[work.ReplicaSetLabel] != "" || ownerFrom(labels) != owner(long) || !IsOfReplicaSet(labels) {
		t.Errorf("%v", labels)
	}
	if IsOfReplicaSet(map[string]string{"app": "web"}) {
		t.Error("any work is one of a set")
	}
}
