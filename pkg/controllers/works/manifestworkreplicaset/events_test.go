// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestworkreplicaset

import (
	"slices"
	"strings"
	"testing"
)

// wantEvents looks at the events since the last look: their type, their reason and the beginning of their message.
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

func TestEvents_TellOfARolloutAndOfWhatHindersIt(t *testing.T) {
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
	f.wantEvents("no cluster is chosen any more", "Warning PlacementDecisionEmpty no cluster was chosen", "Normal AsExpected Authorized is True", "Warning PlacementDecisionEmpty there are no works", "Normal Complete ")
}
