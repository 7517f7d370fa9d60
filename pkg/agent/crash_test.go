// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clusterhub/clusterhub/pkg/agent/agenttest"
	"github.com/clusterhub/clusterhub/pkg/agent/identity/csr"
	"github.com/clusterhub/clusterhub/pkg/agent/state"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/pkg/registration/agentcsr"
)

// atEachWrite runs a test in which a process crashes before or after its n-th write, to the hub or to its own cluster, for every n.
func atEachWrite(t *testing.T, crashAt func(t *testing.T, when string, n int) (crashed bool)) {
	for _, when := range []string{"before", "after"} {
		for n := 1; ; n++ {
			crashed := false
			t.Run(fmt.Sprintf("%s write %d", when, n), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { crashed = crashAt(t, when, n) })
			})
			if t.Failed() || !crashed {
				break
			}
			if n > 100 {
				t.Fatal("the agent does not stop writing")
			}
		}
	}
}

var errCrashed = errors.New("crashed")

// crashing returns a context that ends at the n-th write from now; no write succeeds after it.
func (w *world) crashing(when string, n int) (ctx context.Context, cancel context.CancelCauseFunc) {
	ctx, cancel = context.WithCancelCause(agenttest.Quiet(w.T))
	var writes atomic.Int32
	w.Set(func() {
		w.Write = func(do func()) {
			k := int(writes.Add(1))
			if k < n || k == n && when == "after" {
				do()
			}
			if k == n {
				cancel(errCrashed)
			}
		}
	})
	return ctx, cancel
}

// run runs an agent until the context ends or stop is called, which reports whether it has crashed.
func (w *world) run(ctx context.Context, cancel context.CancelCauseFunc) (stop func() (crashed bool)) {
	ended := make(chan struct{})
	go func() { defer close(ended); _ = w.newAgent().run(ctx) }()
	return func() bool {
		cancel(nil)
		<-ended
		w.Set(func() { w.Write = nil })
		return errors.Is(context.Cause(ctx), errCrashed)
	}
}

// whole checks that no operation is in progress, and that the hub knows the agent's key.
func (w *world) whole() state.State {
	w.T.Helper()
	s := w.State()
	own, err := csr.New().Find(s)
	if own == nil || err != nil {
		w.T.Fatalf("there is no identity: %v", err)
	}
	if why := own.Usable(s); why != nil {
		w.T.Errorf("there is no identity: %v", why)
	}
	if len(s.NextKey) > 0 || s.NextCSR != "" {
		w.T.Error("something was left over")
	}
	return s
}

// known reports an error unless the ManagedCluster was created with the current key.
func (w *world) known(s state.State) {
	w.T.Helper()
	if len(s.Key) > 0 && w.Cluster().Annotations[registration.AnnotationAgentKey] != agenttest.KeyHash(w.T, s.Key) {
		w.T.Error("the hub knows another key")
	}
}

func TestJoin_ResumesAfterCrashAtEachWrite(t *testing.T) {
	atEachWrite(t, joinCrashingAt(false))
}

func TestJoin_DetachedResumesAfterCrashAtEachWrite(t *testing.T) {
	atEachWrite(t, joinCrashingAt(true))
}

func joinCrashingAt(detached bool) func(t *testing.T, when string, n int) bool {
	return func(t *testing.T, when string, n int) bool {
		w := newWorld(t)
		if detached {
			w.Detach()
		}
		ctx, cancel := w.crashing(when, n)
		stop := w.run(ctx, cancel)
		agenttest.Pass(5 * time.Second)
		if ctx.Err() == nil {
			w.Accept()
			agenttest.Pass(20 * time.Second)
		}
		crashed := stop()
		key := firstKey(w.State())

		end := start(t, w.newAgent())
		agenttest.Pass(5 * time.Second)
		w.Accept()
		agenttest.Pass(time.Minute)
		end()
		s := w.whole()
		w.known(s)
		if key != "" && string(s.Key) != key {
			t.Error("the certificate is for another key than the process before had")
		}
		for _, asked := range w.CSRs() {
			if request, err := agentcsr.Parse(&asked); err != nil || request.KeySHA256 != agenttest.KeyHash(t, s.Key) {
				t.Errorf("%s is for another key: %v", asked.Name, err)
			}
		}
		return crashed
	}
}

func firstKey(s state.State) string {
	if len(s.Key) > 0 {
		return string(s.Key)
	}
	return string(s.NextKey)
}

func TestRotation_ResumesAfterCrashAtEachWrite(t *testing.T) {
	atEachWrite(t, func(t *testing.T, when string, n int) bool {
		w := newWorld(t)
		_, end := w.joined()
		end()
		before := w.State()
		agenttest.Pass(7*time.Hour + 59*time.Minute)
		// A lease that cannot be renewed leaves few writes to crash at.
		w.Set(func() {
			w.Refuse = func(_, verb, resource string) error {
				if verb == "update" && resource == "leases" {
					return errors.New("not now")
				}
				return nil
			}
		})
		ctx, cancel := w.crashing(when, n)
		stop := w.run(ctx, cancel)
		agenttest.Pass(5 * time.Minute)
		w.Approve()
		agenttest.Pass(5 * time.Minute)
		crashed := stop()
		under := w.State()

		end = start(t, w.newAgent())
		agenttest.Pass(5 * time.Minute)
		w.Approve()
		agenttest.Pass(5 * time.Minute)
		end()
		s := w.whole()
		if string(s.Key) == string(before.Key) {
			t.Error("the certificate was not renewed")
		}
		if len(under.NextKey) > 0 && string(s.Key) != string(under.NextKey) {
			t.Error("the certificate is for another key than the process before had")
		}
		if n := w.Asked(agenttest.BootstrapUser + " create managedclusters"); n != 1 {
			t.Errorf("the cluster was made %d times", n)
		}
		return crashed
	})
}
