// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
)

// lives runs processes that each end before their second write, to either cluster, until the condition holds: a process starts after every write, and
// must continue from there. It expects at least the given number of processes.
func (w *world) lives(k *operatorv1.Klusterlet, atLeast int, what string, holds func(*operatorv1.Klusterlet) bool) {
	w.Helper()
	for n := 0; n < 200; n++ {
		c := &writes{crashAt: 2}
		w.wrap = c.wrap
		w.until(w.reconciler(), k, what+", or the process has ended", func(k *operatorv1.Klusterlet) bool { return c.crashed || holds(k) })
		w.end()
		if c.crashed {
			continue
		}
		w.wrap = nil
		if n < atLeast {
			w.Errorf("it takes only %d processes until %s", n, what)
		}
		return
	}
	w.Fatalf("with one write by each process it never holds that %s: %v", what, w.last)
}

func TestReconcile_ResumesAfterCrashAtEachWrite(t *testing.T) {
	w := newWorld(t)
	k := w.klusterlet(operatorv1.InstallModeDetached, nil)
	w.lives(k, 2, "it waits for its secrets", func(k *operatorv1.Klusterlet) bool {
		return condition(k, operatorv1.ConditionReadyToApply).Status == metav1.ConditionFalse
	})
	w.given(w.reconciler(), k)
	w.lives(k, 15, "it is applied", isApplied)
	r := w.reconciler()
	w.until(r, k, "it is applied", isApplied)
	w.expectAll(w.now(k))
	w.delete(k)
	w.until(r, k, "it is gone", isGone)
	w.expectNothing(k)
}

func TestFinalize_ResumesAfterCrashAtEachWrite(t *testing.T) {
	w := newWorld(t)
	k := w.applied(w.reconciler(), operatorv1.InstallModeDetached, nil)
	w.delete(k)
	w.lives(k, 15, "it is gone", isGone)
	w.expectNothing(k)
}

// TestFinalize_PartialObjects: the Klusterlet is deleted when only some of its objects exist.
func TestFinalize_PartialObjects(t *testing.T) {
	for _, n := range []int{2, 8, 14, 20} {
		c := &writes{crashAt: n}
		t.Run(fmt.Sprintf("%d writes", n-1), func(t *testing.T) {
			w := newWorld(t)
			k := w.klusterlet(operatorv1.InstallModeDetached, nil)
			w.given(w.reconciler(), k)
			w.wrap = c.wrap
			crashing := w.reconciler()
			w.until(crashing, k, "it is applied, or the process has ended", func(k *operatorv1.Klusterlet) bool { return c.crashed || isApplied(k) })
			w.wrap = nil
			if !c.crashed {
				t.Errorf("all of it is there after %d writes", c.n)
			}
			w.delete(k)
			w.until(w.reconciler(), k, "it is gone", isGone)
			w.expectNothing(k)
		})
	}
}
