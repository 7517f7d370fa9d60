// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteracceptance

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestSlots_AreSpreadEvenlyAndOnceInEachInterval(t *testing.T) {
	const clusters, interval = 10_000, time.Hour
	perMinute := map[int]int{}
	for i := range clusters {
		name := fmt.Sprintf("cluster-%05d", i)
		first := slot(name, interval, start)
		if !first.After(start) || first.Sub(start) > interval {
			t.Fatalf("%s: the first slot is %s after the start", name, first.Sub(start))
		}
		if second := slot(name, interval, first); second.Sub(first) != interval {
			t.Fatalf("%s: slots are %s apart", name, second.Sub(first))
		}
		perMinute[int(first.Sub(start).Minutes())]++
	}
	for minute := range 60 {
		if n := perMinute[minute]; n < 110 || n > 230 {
			t.Errorf("%d checks in minute %d, want about %d", n, minute, clusters/60)
		}
	}
}

// However often the process starts anew: at most one check in an interval, and none soon after the grant.
func TestChecks_SurviveRestarts(t *testing.T) {
	f := newFixture(t, newCluster("c1"))
	f.cloud.interval = time.Hour
	f.settle("c1")
	if f.cloud.grants["c1"] != 1 {
		t.Fatalf("%d grants", f.cloud.grants["c1"])
	}
	var checks []time.Time
	for f.clock.Now().Before(start.Add(48 * time.Hour)) {
		f.restart()
		before := f.cloud.grants["c1"]
		result, err := f.reconcile("c1")
		if err != nil || result.RequeueAfter <= 0 || result.RequeueAfter > 2*time.Hour {
			t.Fatalf("%v, %v", result, err)
		}
		// Half of the processes live to see the check.
		f.clock.SetTime(f.clock.Now().Add(min(result.RequeueAfter, 20*time.Minute)))
		if _, err := f.reconcile("c1"); err != nil {
			t.Fatal(err)
		}
		if f.cloud.grants["c1"] > before {
			checks = append(checks, f.clock.Now())
		}
	}
	if len(checks) < 40 || checks[0].Sub(start) < time.Hour {
		t.Errorf("%d checks in two days, the first after %s", len(checks), checks[0].Sub(start))
	}
	for i := 1; i < len(checks); i++ {
		if gap := checks[i].Sub(checks[i-1]); gap < time.Hour {
			t.Errorf("two checks are %s apart", gap)
		}
	}
}

// A cluster whose check fails works, as far as anybody knows: it stays accepted, and its condition says what is wrong.
func TestChecks_ThatFailAreShownAndTriedAgain(t *testing.T) {
	f := newFixture(t, newCluster("c1"))
	f.cloud.interval = time.Hour
	f.settle("c1")
	f.clock.SetTime(start.Add(3 * time.Hour))
	f.cloud.fail = errors.New("throttled")
	const failing = "True HubClusterAdminAccepted Accepted by hub cluster admin. Its identity could not be checked: throttled"
	for range 3 {
		result, err := f.reconcile("c1")
		if err != nil || result.RequeueAfter <= 0 || result.RequeueAfter > 2*lastRetry {
			t.Fatalf("%v, %v", result, err)
		}
		if got := f.accepted("c1"); !strings.Contains(got, "Its identity could not be checked: granting the cluster its identity: throttled") ||
			!strings.HasPrefix(got, failing[:20]) {
			t.Errorf("condition %q", got)
		}
	}
	f.cloud.fail = nil
	f.settle("c1")
	if got := f.accepted("c1"); got != "True HubClusterAdminAccepted Accepted by hub cluster admin" {
		t.Errorf("condition %q", got)
	}
}

func TestBackoff_IsOfWhatIsTried(t *testing.T) {
	p := newFixture(t).process.paces
	for range 40 {
		if wait := p.failed("c1", "grant"); wait < firstRetry || wait > lastRetry*3/2 {
			t.Errorf("waits %s", wait)
		}
	}
	if p.wait("c1", "grant") == 0 || p.wait("c1", "revoke") != 0 || p.wait("c2", "grant") != 0 {
		t.Error("a revocation, or another cluster, waits for a grant")
	}
	p.succeeded("c1")
	if p.wait("c1", "grant") != 0 {
		t.Error("waits after a success")
	}
}
