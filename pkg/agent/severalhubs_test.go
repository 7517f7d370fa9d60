// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterhub/clusterhub/pkg/agent/agenttest"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

func TestHubs_JoinsFirstThatAccepts(t *testing.T) {
	for name, test := range map[string]struct {
		before    func(*fleet)
		accepting []string
		within    time.Duration
		want      string
		event     []string
	}{
		"all are well": {func(*fleet) {}, []string{"a", "b"}, 2 * time.Minute, "a", nil},
		"the first is down": {func(f *fleet) { f.set("a") }, []string{"a", "b"}, 2 * time.Minute, "b",
			[]string{"The hub a is given up (NoAnswer)", "connection refused", "bootstrap kubeconfig b"}},
		"there is no Secret of the first": {func(f *fleet) { f.secret("a", "") }, []string{"a", "b"}, 2 * time.Minute, "b",
			[]string{"(BootstrapKubeconfigUnusable)", "create the Secret a with the key kubeconfig"}},
		"the Secret of the first is garbage": {func(f *fleet) { f.secret("a", "\x00"+fleetToken) }, []string{"a", "b"}, 2 * time.Minute, "b",
			[]string{"(BootstrapKubeconfigUnusable)", "the bootstrap kubeconfig a cannot be read as a kubeconfig"}},
		"the first does not know the token": {func(f *fleet) {
			f.hubs["a"].Refuse = func(string, string, string) error { return apierrors.NewUnauthorized("no") }
		}, []string{"b"}, 2 * time.Minute, "b", []string{"The hub a is given up (BootstrapTokenRefused)"}},
		"the first does not accept it, and another one does": {func(*fleet) {}, []string{"b"}, timeout + 2*time.Minute, "b",
			[]string{"The hub a is given up (NotAcceptedInTime)"}},
		"only the third is well": {func(f *fleet) { f.set("a"); f.secret("b", "") }, []string{"c"}, 4 * time.Minute, "c", []string{"The hub b is given up"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, "a", "b", "c")
				test.before(f)
				stop := start(t, f.agent("a", "b", "c"))
				f.pass(test.within, test.accepting...)
				f.on(test.want)
				if test.event != nil {
					f.event(test.event...)
					f.event("The cluster now uses the hub of the bootstrap kubeconfig " + test.want)
				}
				if test.want != "c" && f.hubs["c"].Asked("") > 0 {
					t.Error("a hub was asked that was not to be tried")
				}
				stop()
			})
		})
	}
}

// TestHubs_WaitsForLateAcceptance: a new cluster is not registered with all hubs only because an admin takes some minutes.
func TestHubs_WaitsForLateAcceptance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "a", "b")
		stop := start(t, f.agent("a", "b"))
		f.pass(timeout/2, "b")
		if f.hubs["b"].Asked("") > 0 {
			t.Error("the other hub was asked")
		}
		f.pass(time.Minute, "a", "b")
		f.on("a")
		stop()
	})
}

func TestHubs_TimesOutUnresponsiveHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "a", "b")
		stop := start(t, f.agent("a", "b"))
		f.pass(time.Minute, "a", "b")
		f.on("a")
		ofA := f.State()
		f.set("a")
		f.pass(timeout-2*time.Minute, "b")
		if s := f.State(); s.Hub != "a" || f.hubs["b"].Asked("") > 0 {
			t.Fatalf("before the timeout, the hub is %s", s.Hub)
		}
		f.pass(6*time.Minute, "b")
		f.on("b")
		f.event("The hub a is given up (NoAnswer)", "the lease has not been renewed for 11m15s", "bootstrap kubeconfig b")
		if s := f.State(); string(s.Key) == string(ofA.Key) || s.AgentName != ofA.AgentName || s.ClusterName != ofA.ClusterName {
			t.Error("the other hub knows the agent by the same key, or by another name")
		}

		// It stays there, and a comes back as it was, without an admin.
		f.set()
		requests := len(f.hubs["a"].CSRs())
		f.pass(time.Hour, "b")
		f.on("b")
		f.set("b")
		f.pass(timeout + 4*time.Minute)
		f.on("a")
		if s := f.State(); string(s.Key) != string(ofA.Key) || len(f.hubs["a"].CSRs()) != requests {
			t.Error("it came back with another key, or has asked for another certificate")
		}
		stop()
	})
}

func TestHubs_LeavesDenyingHubAtOnce(t *testing.T) {
	for name, deny := range map[string]func(w *agenttest.World){
		"its agent sees it": func(w *agenttest.World) {
			c := w.Cluster()
			c.Spec.HubAcceptsClient = false
			w.Update(c)
		},
		"it has no rights any more": func(w *agenttest.World) { w.Set(func() { w.Granted = false }) },
		"its identity is not known any more": func(w *agenttest.World) {
			w.Set(func() {
				w.Refuse = func(user, _, _ string) error { return apierrors.NewUnauthorized("no") }
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, "a", "b")
				stop := start(t, f.agent("a", "b"))
				f.pass(time.Minute, "a")
				f.on("a")
				deny(f.hubs["a"])
				within := 4 * time.Minute
				if strings.Contains(name, "identity") {
					within += timeout
				}
				f.pass(within, "b")
				f.on("b")
				f.event("The hub a is given up", "bootstrap kubeconfig b")
				asked := f.hubs["a"].Asked("")
				f.pass(time.Hour, "b")
				f.on("b")
				if n := f.hubs["a"].Asked("") - asked; n > 0 {
					t.Errorf("the hub that was given up was asked %d times", n)
				}
				stop()
			})
		})
	}
}

// TestHubs_StaleDenialDoesNotSwitch: the refusal in the state is an old one, and the hub may accept the cluster now.
func TestHubs_StaleDenialDoesNotSwitch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "a", "b")
		stop := start(t, f.agent("a", "b"))
		f.pass(time.Minute, "a")
		stop()
		if err := f.Store().Refused(t.Context(), registration.RefusalNotAccepted); err != nil {
			t.Fatal(err)
		}
		f.set("a") // so that the recorded refusal is not cleared at once
		stop = start(t, f.agent("a", "b"))
		f.pass(2*time.Minute, "b")
		f.set()
		f.pass(3*time.Minute, "b")
		f.on("a")
		stop()
	})
}

// TestAttack_UnavailableHubsGetFewRequests verifies that hubs that are all down get few requests, and that the state is not written all
// the time; the agent joins the first hub that comes back.
func TestAttack_UnavailableHubsGetFewRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "a", "b")
		f.set("a", "b")
		var writes atomic.Int32
		f.Set(func() { f.Write = func(do func()) { writes.Add(1); do() } })
		stop := start(t, f.agent("a", "b"))
		f.pass(time.Hour)
		before := writes.Load()
		f.pass(2 * time.Hour)
		if n := writes.Load() - before; n > 2*40 {
			t.Errorf("in two hours the state and events were written %d times", n)
		}
		if n := f.hubs["a"].Asked("") + f.hubs["b"].Asked(""); n > 3*60*8 {
			t.Errorf("in three hours the hubs were asked %d times", n)
		}
		f.set("a")
		f.pass(12*time.Minute, "b")
		f.on("b")
		stop()
	})
}

// TestAttack_TwoDenyingHubsDoNotFlap verifies that the agent does not switch between the hubs all the time.
func TestAttack_TwoDenyingHubsDoNotFlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "a", "b")
		stop := start(t, f.agent("a", "b"))
		f.pass(time.Minute, "a")
		f.set("a")
		f.pass(timeout+4*time.Minute, "b")
		f.on("b")
		f.set()
		for _, w := range f.hubs {
			c := w.Cluster()
			c.Spec.HubAcceptsClient = false
			w.Update(c)
		}
		changes, last := 0, ""
		for range 2 * 60 * 3 {
			agenttest.Pass(20 * time.Second)
			if now := f.State().Hub; now != last {
				last = now
				changes++
			}
		}
		if changes > 40 {
			t.Errorf("in two hours the agent has changed its hub %d times", changes)
		}
		// Changes between two looks are not seen, but their requests are: 300 to each hub.
		for name, w := range f.hubs {
			if n := w.Asked(""); n > 600 {
				t.Errorf("in two hours the agent sent %d requests to the hub %s, expected at most 600", n, name)
			}
		}
		f.accept("a")
		f.pass(15 * time.Minute)
		f.on("a")
		stop()
	})
}

func TestHubs_ResumesAfterCrashAtEachWrite(t *testing.T) {
	atEachWrite(t, func(t *testing.T, when string, n int) bool {
		f := newFleet(t, "a", "b")
		f.timeout = registration.MinHubTimeoutSeconds * time.Second
		stop := start(t, f.agent("a", "b"))
		f.pass(time.Minute, "a")
		stop()
		ofA := f.State()
		f.set("a")
		ctx, cancel := f.crashing(when, n)
		f.hubs["b"].Set(func() { f.hubs["b"].Write = f.Write })
		ended := make(chan struct{})
		a := f.agent("a", "b")
		go func() { defer close(ended); _ = a.run(ctx) }()
		for i := 0; i < 12 && ctx.Err() == nil; i++ {
			f.pass(30*time.Second, "b")
		}
		cancel(nil)
		<-ended
		crashed := errors.Is(context.Cause(ctx), errCrashed)
		for _, w := range f.hubs {
			w.Set(func() { w.Write = nil })
		}
		stop = start(t, f.agent("a", "b"))
		f.pass(f.timeout+3*time.Minute, "b")
		f.on("b")
		if s := f.State(); string(s.Others["a"].Key) != string(ofA.Key) || len(s.Others) != 1 {
			t.Errorf("what is remembered of the former hub is lost: there are %d", len(s.Others))
		}
		if hash := f.hubs["b"].Cluster().Annotations[registration.AnnotationAgentKey]; hash != agenttest.KeyHash(t, f.State().Key) {
			t.Error("the hub knows another key")
		}
		stop()
		return crashed
	})
}
