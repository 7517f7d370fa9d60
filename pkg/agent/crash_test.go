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

	"github.com/clusterhub/clusterhub/pkg/registration"
)

// atEachWrite runs a test in which a process crashes before or after its n-th write, to the hub or to its own cluster,
// for every n there is.
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

// crashing is a context that ends at the n-th write from now; nothing is written after it.
func (w *world) crashing(when string, n int) (ctx context.Context, cancel context.CancelCauseFunc) {
	ctx, cancel = context.WithCancelCause(quiet(w.t))
	var writes atomic.Int32
	w.set(func() {
		w.write = func(do func()) {
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

// run runs an agent until the context ends or stop is called, which says whether it has crashed.
func (w *world) run(ctx context.Context, cancel context.CancelCauseFunc) (stop func() (crashed bool)) {
	ended := make(chan struct{})
	go func() { defer close(ended); _ = w.newAgent().run(ctx) }()
	return func() bool {
		cancel(nil)
		<-ended
		w.set(func() { w.write = nil })
		return errors.Is(context.Cause(ctx), errCrashed)
	}
}

// whole checks that nothing is under way any more, and that the hub knows the agent's key.
func (w *world) whole() state {
	w.t.Helper()
	s := w.secret()
	if why := (&csrIdentity{}).usable(s); why != nil {
		w.t.Errorf("there is no identity: %v", why)
	}
	if len(s.nextKey) > 0 || s.nextCSR != "" {
		w.t.Error("something was left over")
	}
	return s
}

// known fails unless the cluster was made with the key that there is now.
func (w *world) known(s state) {
	w.t.Helper()
	if len(s.key) > 0 && w.cluster().Annotations[registration.AnnotationAgentKey] != mustHash(w.t, s.key) {
		w.t.Error("the hub knows another key")
	}
}

func TestJoin_ResumesAfterACrashAtEachWrite(t *testing.T) {
	atEachWrite(t, func(t *testing.T, when string, n int) bool {
		w := newWorld(t)
		ctx, cancel := w.crashing(when, n)
		stop := w.run(ctx, cancel)
		pass(5 * time.Second)
		if ctx.Err() == nil {
			w.accept()
			pass(20 * time.Second)
		}
		crashed := stop()
		key := firstKey(w.secret())

		end := start(t, w.newAgent())
		pass(5 * time.Second)
		w.accept()
		pass(time.Minute)
		end()
		s := w.whole()
		w.known(s)
		if key != "" && string(s.key) != key {
			t.Error("the certificate is for another key than the process before had")
		}
		for _, csr := range w.listCSRs() {
			if !requestsKey(csr.Spec.Request, s.key) {
				t.Errorf("%s is for another key", csr.Name)
			}
		}
		return crashed
	})
}

func firstKey(s state) string {
	if len(s.key) > 0 {
		return string(s.key)
	}
	return string(s.nextKey)
}

func TestRotation_ResumesAfterACrashAtEachWrite(t *testing.T) {
	atEachWrite(t, func(t *testing.T, when string, n int) bool {
		w := newWorld(t)
		_, end := w.joined()
		end()
		before := w.secret()
		pass(7*time.Hour + 59*time.Minute)
		// A lease that cannot be renewed leaves few writes to crash at.
		w.set(func() {
			w.refuse = func(_, verb, resource string) error {
				if verb == "update" && resource == "leases" {
					return errors.New("not now")
				}
				return nil
			}
		})
		ctx, cancel := w.crashing(when, n)
		stop := w.run(ctx, cancel)
		pass(5 * time.Minute)
		w.approve()
		pass(5 * time.Minute)
		crashed := stop()
		under := w.secret()

		end = start(t, w.newAgent())
		pass(5 * time.Minute)
		w.approve()
		pass(5 * time.Minute)
		end()
		s := w.whole()
		if string(s.key) == string(before.key) {
			t.Error("the certificate was not renewed")
		}
		if len(under.nextKey) > 0 && string(s.key) != string(under.nextKey) {
			t.Error("the certificate is for another key than the process before had")
		}
		if n := w.asked(bootstrapUser + " create managedclusters"); n != 1 {
			t.Errorf("the cluster was made %d times", n)
		}
		return crashed
	})
}
