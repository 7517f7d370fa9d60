// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestworkreplicaset

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/apis/duration"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
	workv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1alpha1"
)

// kept returns the existing revisions, with the latest first: their number and the text of their template.
func (f *fixture) kept() (kept []string) {
	f.Helper()
	list := &workv1alpha1.ManifestWorkReplicaSetRevisionList{}
	if err := f.client.List(f.Context(), list); err != nil {
		f.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b workv1alpha1.ManifestWorkReplicaSetRevision) int {
		return int(b.Spec.Revision - a.Spec.Revision)
	})
	for _, r := range list.Items {
		_, text, _ := strings.Cut(string(r.Spec.ManifestWorkTemplate.Workload.Manifests[0].Raw), `"text":"`)
		text, _, _ = strings.Cut(text, `"`)
		kept = append(kept, fmt.Sprintf("%d %s", r.Spec.Revision, text))
		if r.Name != work.RevisionName(key.Name, r.Spec.ReplicaSetUID, r.Spec.Revision) || r.Labels[work.ReplicaSetLabel] != "ns.web" ||
			len(r.OwnerReferences) != 1 || r.OwnerReferences[0].UID != r.Spec.ReplicaSetUID {
			f.Errorf("a revision of nothing: %v", r.ObjectMeta)
		}
	}
	return kept
}

func (f *fixture) wantKept(what string, want ...string) {
	f.Helper()
	if got := f.kept(); !slices.Equal(got, want) {
		f.Errorf("%s: kept are %q, want %q", what, got, want)
	}
}

// rollOut has all clusters report the conditions for what was written, until nothing is left to do.
func (f *fixture) rollOut(conditions string, clusters ...string) {
	f.Helper()
	for range 6 {
		f.settle()
		if f.dead {
			return
		}
		f.report(conditions, clusters...)
		f.pass(time.Second)
	}
	f.settle()
}

func TestRevisions_LastTwoSucceededTemplates(t *testing.T) {
	f := newFixture(t, replicaSet("p"))
	f.decide("p", "c1", "c2")
	f.settle()
	f.wantKept("before a cluster has it")
	f.report("Applied Available", "c1")
	f.settle()
	f.wantKept("before all clusters have it")
	f.rollOut("Applied Available", "c1", "c2")
	f.wantKept("all have it", "1 one")

	f.pass(time.Hour)
	f.settle()
	if slices.Contains(f.effects, "create ns") || slices.Contains(f.effects, "delete ns") {
		t.Errorf("without a change, it writes %q", f.effects)
	}

	f.retext("two")
	f.rollOut("Applied Degraded", "c1", "c2")
	f.wantKept("the second one fails", "1 one")
	const well = "Applied Available !Degraded"
	f.retext("one")
	f.rollOut(well, "c1", "c2")
	f.wantKept("back again", "1 one")

	f.retext("three")
	f.rollOut(well, "c1", "c2")
	f.wantKept("the third one", "4 three", "1 one")
	f.retext("one")
	f.rollOut(well, "c1", "c2")
	f.wantKept("back again, which is newer then", "5 one", "4 three")
	f.retext("four")
	f.rollOut(well, "c1", "c2")
	f.wantKept("the oldest one goes", "6 four", "5 one")

	change(f, key, func(set *workv1alpha1.ManifestWorkReplicaSet) {
		set.Spec.CascadeDeletionPolicy = workv1alpha1.Foreground
	})
	f.decide("p", "c1", "c2", "c3")
	f.rollOut(well, "c1", "c2", "c3")
	f.wantKept("another spec with the same template", "6 four", "5 one")
}

func TestRevisions_RequireSuccess(t *testing.T) {
	f := newFixture(t, progressive(replicaSet("p", "q"), 9, func(p *clusterv1alpha1.RolloutProgressive) {
		p.MinSuccessTime = duration.Duration{Duration: time.Minute}
	}))
	f.decide("p")
	f.decide("q")
	f.rollOut("Applied Available")
	f.wantKept("no cluster was chosen")
	f.decide("p", "c1")
	f.rollOut("Applied Available", "c1")
	f.wantKept("it is soaking")
	f.pass(2 * time.Minute)
	f.rollOut("Applied Available", "c1")
	f.wantKept("a placement without clusters does not matter", "1 one")
}

// A new set with the name of an earlier one does not get its revisions.
func TestRevisions_DeletedWithSet(t *testing.T) {
	f := newFixture(t, replicaSet("p"))
	f.decide("p", "c1")
	f.rollOut("Applied Available", "c1")
	orphan := &workv1alpha1.ManifestWorkReplicaSetRevisionList{}
	if err := f.client.List(f.Context(), orphan); err != nil || len(orphan.Items) != 1 {
		t.Fatal(orphan.Items, err)
	}
	if err := f.client.Delete(f.Context(), f.set()); err != nil {
		t.Fatal(err)
	}
	f.rollOut("")
	f.wantKept("its set is gone")

	// The garbage collector has left a revision, and there is a new set of the name.
	orphan.Items[0].ResourceVersion = ""
	again := replicaSet("p")
	again.Spec.ManifestWorkTemplate = template("theirs")
	f.create(again, &orphan.Items[0])
	f.rollOut("Applied Available", "c1")
	f.wantKept("another set has its name", "1 theirs")
}

func TestRevisions_AfterKill(t *testing.T) {
	for after := 1; after <= 12; after++ {
		f := newFixture(t, replicaSet("p"))
		f.decide("p", "c1")
		for i, text := range []string{"one", "two", "three"} {
			if i > 0 {
				f.retext(text)
			}
			f.killAfter = after
			f.rollOut("Applied Available", "c1")
			f.restart()
			f.rollOut("Applied Available", "c1")
		}
		f.wantKept(fmt.Sprintf("killed after %d writes each time", after), "3 three", "2 two")
	}
}

// The rollout continues, and the revision is tried again after a while.
func TestRevisions_Refused(t *testing.T) {
	f := newFixture(t, replicaSet("p"))
	tries, answer := 0, apierrors.NewForbidden(schema.GroupResource{}, "web", errors.New("exceeded quota"))
	f.refuse = func(effect string) error {
		if effect == "create ns" && answer != nil {
			tries++
			return answer
		}
		return nil
	}
	f.decide("p", "c1")
	f.rollOut("Applied Available", "c1")
	f.wantKept("there is a quota")
	if tries != 1 {
		t.Errorf("tried %d times", tries)
	}
	f.is(rolledOut, metav1.ConditionTrue, workv1alpha1.ReasonComplete)
	answer = nil
	f.pass(reviseAgain)
	f.settle()
	f.wantKept("there is room again", "1 one")
}

// The cache holds the digest of the template of a revision, and not the template.
func TestForCache_DropsTemplates(t *testing.T) {
	r := &workv1alpha1.ManifestWorkReplicaSetRevision{}
	r.Spec.ManifestWorkTemplate = template("secret")
	spec := template("secret")
	for range 2 {
		if _, err := ForCache(r); err != nil || len(r.Spec.ManifestWorkTemplate.Workload.Manifests) > 0 || r.Annotations[digestAnnotation] != digest(&spec) {
			t.Errorf("%v: %v", err, r)
		}
	}
}
