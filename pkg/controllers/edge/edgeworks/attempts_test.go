// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edgeworks

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/controllers/edge/edgetest"
)

// trying returns a fixture with a policy with the versions 2.0.0 and 1.0.0, the first of which is placed and has this priority.
func trying(t *testing.T, priority edgev1alpha1.Priority) *fixture {
	f := newFixture(t)
	f.Service("shop", "web", "2.0.0", strings.Replace(manifest, "image: web", "image: web:2", 1), nil)
	priority.PriorityValue = 1
	edgetest.Change(f.FakeHub, f.policy(), func(p *edgev1alpha1.DeploymentPolicy) {
		p.Spec.Service.ServiceVersions = []edgev1alpha1.ServiceVersion{{Version: "2.0.0", Priority: &priority}, {Version: "1.0.0", Priority: &edgev1alpha1.Priority{PriorityValue: 2}}}
	})
	f.places("2.0.0")
	f.state("Delivering Delivering")
	return f
}

// places writes a version into the placement, as the controller of placements does.
func (f *fixture) places(version string) {
	f.Helper()
	edgetest.Change(f.FakeHub, f.placement(), func(p *edgev1alpha1.EdgePlacement) { p.Spec.Services[0].Version = version })
}

// pass advances the clock by the delay that the controller has requested.
func (f *fixture) pass(want time.Duration) {
	f.Helper()
	f.settle()
	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(f.placement())}
	if got := f.process.Later[request]; got != want {
		f.Fatalf("the placement is looked at again after %s, want %s", got, want)
	}
	f.clock.SetTime(f.clock.Now().Add(want))
	f.process.Queue.Add(request)
	f.settle()
}

// attempts checks the attempts of the placement that have more than a failing version, as "2.0.0 Retrying 1", with the service before it for a
// pattern.
func (f *fixture) attempts(want string) {
	f.Helper()
	f.settle()
	var got []string
	for _, a := range f.placement().Status.Attempts {
		if a.State == "" && a.Failures == 0 {
			continue
		}
		text := fmt.Sprint(a.Version, " ", a.State, " ", a.Failures)
		if f.pattern {
			text = a.Name + " " + text
		}
		got = append(got, text)
	}
	if s := strings.Join(got, ", "); s != want {
		f.Fatalf("the attempts are %q, want %q", s, want)
	}
}

func TestAttempts_FailingVersionIsGivenUp(t *testing.T) {
	f := trying(t, edgev1alpha1.Priority{})
	f.say("Applied=False")
	f.state("Failed NotApplied")
	f.attempts("")
	f.say("Applied=True", "Available=True", "Progressing=True")
	f.state("Delivering Delivering")
	f.say("Degraded=True")
	f.pass(failsFor)
	f.attempts("2.0.0 GivenUp 1")
	// A new process knows it, too.
	f.restart()
	f.attempts("2.0.0 GivenUp 1")
	f.places("1.0.0")
	f.state("Delivering Delivering")
	f.say("Applied=True", "Available=True", "Progressing=False", "Degraded=False")
	f.state("Running Running")
	f.attempts("2.0.0 GivenUp 1, 1.0.0 Verified 0")
	if got := f.placement().Status.Message; !strings.Contains(got, "version 2.0.0 is not retried after 1 failures: objects do not become ready") {
		t.Errorf("the message is %q", got)
	}
	// There is no version after the last one.
	f.say("Degraded=True")
	f.state("Failed Degraded")
	f.attempts("2.0.0 GivenUp 1, 1.0.0 Verified 0")
	// The placement with the version that is given up is not what the rules decide, so no work is written for it.
	f.places("2.0.0")
	f.state("Pending NotDecided")
	// A repaired service is tried again.
	s := &edgev1alpha1.EdgeService{}
	s.Namespace, s.Name = "shop", "web-2.0.0-amd64"
	f.places("1.0.0")
	f.state("Failed Degraded")
	list := &edgev1alpha1.EdgeServiceList{}
	if err := f.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if list.Items[i].Spec.Version == "2.0.0" {
			edgetest.Change(f.FakeHub, &list.Items[i], func(s *edgev1alpha1.EdgeService) { s.Spec.Label = "repaired" })
		}
	}
	f.attempts("")
	f.state("Pending NotDecided")
	f.places("2.0.0")
	f.state("Delivering Delivering")
}

func TestAttempts_AreRepeatedPerPolicy(t *testing.T) {
	f := trying(t, edgev1alpha1.Priority{Retries: 2, RetryDurations: 600})
	fails := func(want string, delay time.Duration) {
		t.Helper()
		before := f.work().UID
		f.say("Applied=False")
		f.pass(failsFor)
		f.attempts(want)
		if delay == 0 {
			return
		}
		f.state("Failed NotApplied")
		f.pass(delay)
		f.state("Delivering Delivering")
		if now := f.work().UID; now == before {
			t.Fatal("the objects are not removed before they are applied again")
		}
	}
	fails("2.0.0 Retrying 1", 10*time.Second)
	fails("2.0.0 Retrying 2", 20*time.Second)
	// Failures before the time window of the policy do not count.
	f.clock.SetTime(f.clock.Now().Add(10 * time.Minute))
	fails("2.0.0 Retrying 1", 10*time.Second)
	fails("2.0.0 Retrying 2", 20*time.Second)
	fails("2.0.0 GivenUp 3", 0)
	// A changed policy starts again.
	edgetest.Change(f.FakeHub, f.policy(), func(p *edgev1alpha1.DeploymentPolicy) { p.Spec.Service.ServiceVersions[0].Priority.Retries = 1 })
	f.attempts("")
}

func TestAttempts_StableVersionRemains(t *testing.T) {
	f := trying(t, edgev1alpha1.Priority{VerifiedDurations: 90})
	runs := func(degraded string) {
		f.say("Applied=True", "Available=True", "Progressing=False", "Degraded="+degraded)
	}
	runs("False")
	f.pass(90 * time.Second)
	f.attempts("2.0.0 Verified 0")
	runs("True")
	f.pass(0)
	f.attempts("2.0.0 Verified 0")

	f = trying(t, edgev1alpha1.Priority{VerifiedDurations: 90})
	runs("False")
	f.settle()
	f.clock.SetTime(f.clock.Now().Add(80 * time.Second))
	runs("True")
	f.pass(failsFor)
	f.attempts("2.0.0 GivenUp 1")
}

// A failure without times, which another client has written into the status, is counted again and causes no panic.
func TestAttack_AttemptWithoutTimes(t *testing.T) {
	f := trying(t, edgev1alpha1.Priority{Retries: 1})
	f.say("Applied=False")
	f.pass(failsFor)
	f.attempts("2.0.0 Retrying 1")
	edgetest.Change(f.FakeHub, f.placement(), func(p *edgev1alpha1.EdgePlacement) {
		p.Status.Attempts[0].FirstFailureTime, p.Status.Attempts[0].LastFailureTime = nil, nil
	})
	f.attempts("2.0.0 Retrying 1")
	if a := f.placement().Status.Attempts[0]; a.FirstFailureTime == nil || a.LastFailureTime == nil {
		t.Errorf("the attempt is %+v", a)
	}
}

// A version stays if no other fits, or if the policy sets no priority.
func TestAttempts_OnlyWithAlternative(t *testing.T) {
	f := trying(t, edgev1alpha1.Priority{Retries: 1})
	edgetest.Change(f.FakeHub, f.policy(), func(p *edgev1alpha1.DeploymentPolicy) { p.Spec.Service.ServiceVersions[1].Version = "3.0.0" })
	f.say("Applied=False")
	f.pass(failsFor)
	f.attempts("2.0.0 Retrying 1")
	f.pass(firstRetry)
	f.say("Applied=False")
	f.pass(failsFor)
	f.attempts("2.0.0  2")
	f.pass(0)
	f.state("Failed NotApplied")
	// Another version is added.
	f.Service("shop", "web", "3.0.0", manifest, nil)
	f.pass(failsFor)
	f.attempts("2.0.0 Retrying 1")
	f.pass(firstRetry)
	f.say("Applied=False")
	f.pass(failsFor)
	f.attempts("2.0.0 GivenUp 2")

	f = trying(t, edgev1alpha1.Priority{})
	edgetest.Change(f.FakeHub, f.policy(), func(p *edgev1alpha1.DeploymentPolicy) { p.Spec.Service.ServiceVersions[0].Priority = nil })
	edgetest.Change(f.FakeHub, f.policy(), func(p *edgev1alpha1.DeploymentPolicy) { p.Spec.Service.ServiceVersions[1].Priority = nil })
	f.say("Applied=False")
	f.pass(0)
	f.attempts("")
}
