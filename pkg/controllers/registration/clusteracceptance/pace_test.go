// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteracceptance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/record"
)

func TestSlots_AreSpreadOverInterval(t *testing.T) {
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

// However often the process restarts, there is at most one check in an interval, and none soon after the grant.
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
		// Half of the processes live long enough for the check.
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

// A cluster whose check fails works as far as is known: it stays accepted, and its condition has the error.
func TestChecks_FailuresAreReportedAndRetried(t *testing.T) {
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

func TestBackoff_PerClusterAndOperation(t *testing.T) {
	p := newFixture(t).process.paces
	for range 40 {
		if wait := p.of("c1").failed("grant", nil); wait < firstRetry || wait > lastRetry*3/2 {
			t.Errorf("waits %s", wait)
		}
	}
	waits := func(cluster, what string) bool {
		wait, _ := p.of(cluster).wait(what)
		return wait > 0
	}
	if !waits("c1", "grant") || waits("c1", "revoke") || waits("c2", "grant") {
		t.Error("a revocation, or another cluster, waits for a grant")
	}
	p.of("c1").succeeded()
	if waits("c1", "grant") {
		t.Error("waits after a success")
	}
}

// A terminal error needs a change by an admin: it has the longest delay, and the condition has the error.
func TestBackoff_TerminalErrorHasLongestDelay(t *testing.T) {
	for name, test := range map[string]struct {
		before func(*fixture)
		want   string
	}{
		"grant":  {func(*fixture) {}, "granting the cluster its identity: access denied"},
		"revoke": {func(f *fixture) { f.settle("c1"); f.change("c1", deny) }, "revoking the cluster's identity: access denied"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newCluster("c1"))
			test.before(f)
			f.cloud.fail = driver.Terminal(errors.New("access denied"))
			before := f.cloud.grants["c1"] + f.cloud.revokes
			from := f.clock.Now()
			for f.clock.Now().Before(from.Add(time.Hour)) {
				result, err := f.reconcile("c1")
				if err != nil || result.RequeueAfter < lastRetry || result.RequeueAfter > lastRetry*3/2 {
					t.Fatalf("%v, %v", result, err)
				}
				if got := f.accepted("c1"); got != "False Error "+test.want {
					t.Errorf("condition %q", got)
				}
				f.clock.SetTime(f.clock.Now().Add(result.RequeueAfter))
			}
			if calls := f.cloud.grants["c1"] + f.cloud.revokes - before; calls < 8 || calls > 12 {
				t.Errorf("%d calls in an hour", calls)
			}
			f.cloud.fail = nil
			f.settle("c1")
			if got := f.accepted("c1"); strings.Contains(got, "Error") {
				t.Errorf("condition %q", got)
			}
		})
	}
}

// Until the next try, the result of the last one is shown, even if its condition could not be written because the cluster had just changed.
func TestBackoff_ReportsErrorAfterConflict(t *testing.T) {
	f := newFixture(t, newCluster("c1"))
	f.cloud.fail = driver.Terminal(errors.New("access denied"))
	shown := func(want string) {
		t.Helper()
		f.outdated = 1
		for range 3 { // events of changes by others
			if _, err := f.reconcile("c1"); err != nil {
				t.Fatal(err)
			}
		}
		if got := f.accepted("c1"); got != "False Error "+want {
			t.Errorf("condition %q, want %s", got, want)
		}
	}
	shown("granting the cluster its identity: access denied")
	f.cloud.fail = nil
	f.clock.SetTime(f.clock.Now().Add(2 * lastRetry))
	f.settle("c1")
	f.change("c1", deny)
	f.cloud.fail = driver.Terminal(errors.New("not now"))
	shown("revoking the cluster's identity: not now")
	if calls := f.cloud.grants["c1"] + f.cloud.revokes; calls != 3 {
		t.Errorf("%d calls, want 3", calls)
	}
}

// hanging is a driver whose cloud does not respond.
type hanging struct {
	name string
	// entered receives a value from each call; none returns before end is closed.
	entered, end chan struct{}
}

func (h *hanging) Name() string { return h.name }
func (h *hanging) Handles(c *clusterv1.ManagedCluster) bool {
	return c.Annotations["test/driver"] == h.name
}
func (h *hanging) Plan(*clusterv1.ManagedCluster) (driver.Record, error) { return "r", nil }
func (h *hanging) Grant(context.Context, string, driver.Record) error {
	if h.entered != nil {
		h.entered <- struct{}{}
		<-h.end
	}
	return nil
}
func (h *hanging) Revoke(context.Context, string, driver.Record) error { return nil }
func (h *hanging) CheckInterval() time.Duration                        { return 0 }
func (h *hanging) AutoApproves(*clusterv1.ManagedCluster) bool         { return false }

// If a cloud does not respond, workers are left for the clusters of other drivers, however many clusters wait for it.
func TestWorkers_OneDriverDoesNotTakeAll(t *testing.T) {
	slow := &hanging{name: "slow", entered: make(chan struct{}, workers), end: make(chan struct{})}
	quick := &hanging{name: "quick"}
	b := fake.NewClientBuilder().WithScheme(newScheme(t)).WithStatusSubresource(&clusterv1.ManagedCluster{})
	add := func(name, driver string) {
		c := newCluster(name)
		c.Annotations["test/driver"] = driver
		b.WithObjects(c)
	}
	for i := range workers {
		add(fmt.Sprintf("slow-%d", i), "slow")
	}
	add("quick-1", "quick")
	c := b.Build()
	r := newReconciler(c, c, events.NewFakeRecorder(1000), clocktesting.NewFakePassiveClock(start),
		Options{Drivers: driver.Drivers{slow, quick}})
	results := make(chan reconcile.Result, workers)
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			result, err := r.Reconcile(t.Context(), request(fmt.Sprintf("slow-%d", i)))
			if err != nil {
				t.Error(err)
			}
			results <- result
		})
	}
	// Calls above the limit return while all the others still wait.
	for range workers - callers {
		if result := <-results; result.RequeueAfter < busyDriver || result.RequeueAfter > 2*busyDriver {
			t.Errorf("%v", result)
		}
	}
	if _, err := r.Reconcile(t.Context(), request("quick-1")); err != nil {
		t.Error(err)
	}
	if kept, err := record.Get(t.Context(), c, "quick-1"); err != nil || record.Of(kept).Granted.IsZero() {
		t.Error("the cluster of the other driver waits")
	}
	close(slow.end)
	wg.Wait()
	if calls := len(slow.entered); calls != callers {
		t.Errorf("%d calls at once, want %d", calls, callers)
	}
}
