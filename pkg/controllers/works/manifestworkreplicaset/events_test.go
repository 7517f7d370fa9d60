// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestworkreplicaset

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1alpha1"
)

// wantEvents compares the events since the last call: their type, their reason and the beginning of their message.
func (f *fixture) wantEvents(what string, want ...string) {
	f.Helper()
	var got []string
	for len(f.events.Events) > 0 {
		got = append(got, <-f.events.Events)
	}
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		f.Errorf("%s: the events are %q, want some that begin with %q", what, got, want)
	}
}

func TestEvents_RolloutAndFaults(t *testing.T) {
	f := newFixture(t, replicaSet("p"))
	f.decide("p", "c1", "c2")
	f.settle()
	f.wantEvents("a new set", "Normal Progressing 0 of 2 clusters have succeeded")
	f.report("Applied Available", "c1")
	f.settle()
	f.wantEvents("one of two clusters has it")
	f.report("Applied Available", "c2")
	f.settle()
	f.wantEvents("all have it", "Normal Complete PlacementRolledOut is True")
	f.report("Applied Available Degraded", "c1")
	f.settle()
	f.wantEvents("one is degraded", "Warning NotAsExpected of 2 works", "Normal Progressing 1 of 2 clusters have succeeded")
	f.report("Applied Available !Degraded", "c1")
	f.settle()
	f.wantEvents("it is well again", "Normal AsExpected ManifestworkApplied is True", "Normal Complete ")

	f.allows = func(string) (bool, error) { return false, nil }
	f.retext("new")
	f.settle()
	f.wantEvents("the author may not", "Warning NotAllowed ", "Normal Progressing ")
	f.pass(deniedFor)
	f.settle()
	f.wantEvents("nothing has changed")

	f.decide("p")
	f.settle()
	f.wantEvents("no cluster is chosen any more", "Warning PlacementDecisionEmpty no cluster was chosen", "Normal AsExpected Authorized is True", "Warning PlacementDecisionEmpty no works exist", "Normal Complete ")
}

// The event that works cannot be applied is recorded once, however often their agents report, and not again by a hub that was restarted.
func TestEvents_WorksThatCannotBeApplied(t *testing.T) {
	f := newFixture(t, replicaSet("p"))
	f.decide("p", "c1", "c2")
	f.settle()
	f.report("!Applied", "c1")
	f.settle()
	f.wantEvents("one cannot be applied", "Normal Progressing ", "Warning WorksNotApplied c1 could not apply their works")
	f.is(workv1alpha1.ManifestWorkReplicaSetConditionManifestworkApplied, metav1.ConditionFalse, workv1alpha1.ReasonProcessing) // upstream's word
	if message := f.condition(workv1alpha1.ManifestWorkReplicaSetConditionManifestworkApplied).Message; !strings.Contains(message, "; c1 could not apply") {
		t.Errorf("the condition says %q", message)
	}
	for range 10 {
		f.report("Applied", "c1")
		f.settle()
		f.report("!Applied", "c1")
		f.settle()
	}
	f.report("!Applied", "c2")
	f.settle()
	f.wantEvents("it comes and goes within a minute")
	f.pass(tellsAgain)
	f.settle()
	f.wantEvents("it is as it was told")
	f.report("Applied", "c1", "c2")
	f.settle()
	f.wantEvents("both can", "Normal WorksApplied ")
	f.report("!Applied", "c2")
	f.settle()
	f.wantEvents("one cannot again, within a minute")
	if again, err := f.process.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil || again.RequeueAfter <= spacing || again.RequeueAfter > tellsAgain {
		t.Errorf("it is looked at again after %s, %v, want within a minute", again.RequeueAfter, err)
	}
	f.pass(tellsAgain)
	f.settle()
	f.wantEvents("and still cannot", "Warning WorksNotApplied c2 ")

	f.restart()
	f.settle()
	f.pass(tellsAgain)
	f.settle()
	f.wantEvents("the hub was started again")
	f.retext("better") // the status is still of the previous template
	f.settle()
	f.wantEvents("there is another template", "Normal WorksApplied ")
}
