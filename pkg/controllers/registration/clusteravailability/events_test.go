// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteravailability

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
)

// said returns the events since the last call.
func (f *fixture) said() (all []string) {
	for len(f.events.Events) > 0 {
		all = append(all, <-f.events.Events)
	}
	return all
}

func (f *fixture) expectSaid(want ...string) {
	f.Helper()
	if got := f.said(); !slices.Equal(got, want) {
		f.Errorf("the events are %q, want %q", got, want)
	}
}

func TestEvents_OnePerTransition(t *testing.T) {
	f := newFixture(t, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1", Generation: 1}})
	f.look()
	f.expectSaid() // a new cluster is not lost
	f.set("HubAcceptedManagedCluster", metav1.ConditionTrue, "HubClusterAdminAccepted")
	f.set(available, metav1.ConditionTrue, "ManagedClusterAvailable")
	f.look()
	f.look()
	f.expectSaid("Normal ManagedClusterAvailable ")
	f.pass(5 * time.Minute)
	f.look()
	f.look()
	f.look()
	f.expectSaid("Warning ManagedClusterLost Registration agent stopped updating its lease.")
	// A new process does not repeat events.
	f.restart()
	f.look()
	f.expectSaid()
	f.renew(true)
	f.set(available, metav1.ConditionFalse, "ManagedClusterKubeAPIServerUnavailable")
	f.look()
	f.look()
	f.expectSaid("Warning ManagedClusterNotAvailable ")
}

// TestEvents_AreRateLimited verifies that a cluster, or a fleet, that comes and goes does not fill the storage.
func TestEvents_AreRateLimited(t *testing.T) {
	f := joined(t)
	f.said()
	flap := func(times int) int {
		for range times {
			f.set(available, metav1.ConditionFalse, "Bad")
			f.look()
			f.set(available, metav1.ConditionTrue, "Good")
			f.look()
		}
		return len(f.said())
	}
	if n := flap(eventsAtOnce); n != eventsAtOnce {
		t.Errorf("there are %d events at once, want %d", n, eventsAtOnce)
	}
	f.pass(10 * time.Second)
	f.renew(true)
	if n := flap(20); n != 10*eventsPerSecond {
		t.Errorf("there are %d events after ten seconds, want %d", n, 10*eventsPerSecond)
	}
}
