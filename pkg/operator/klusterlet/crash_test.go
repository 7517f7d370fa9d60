// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
)

// atEachWrite runs a test in which a process ends before its n-th write, to either cluster, for every n there is: so after each, too.
func atEachWrite(t *testing.T, crashAt func(t *testing.T, c *writes)) {
	for n := 1; ; n++ {
		c := &writes{crashAt: n}
		t.Run(fmt.Sprintf("write %d", n), func(t *testing.T) { crashAt(t, c) })
		if t.Failed() || !c.crashed {
			if n < 10 {
				t.Errorf("there are only %d writes", n-1)
			}
			return
		}
		if n > 200 {
			t.Fatal("it does not stop writing")
		}
	}
}

func TestKeep_ResumesAfterACrashAtEachWrite(t *testing.T) {
	atEachWrite(t, func(t *testing.T, c *writes) {
		w := newWorld(t)
		k := w.klusterlet(operatorv1.InstallModeDetached, nil)
		w.given(w.reconciler(), k)
		w.wrap = c.wrap
		crashing := w.reconciler()
		w.until(crashing, k, "it is applied, or the process has ended", func(k *operatorv1.Klusterlet) bool { return c.crashed || isApplied(k) })
		w.wrap = func(c client.Client) client.Client { return c }
		r := w.reconciler()
		w.until(r, k, "it is applied", isApplied)
		w.expectAll(w.now(k))
		w.delete(k)
		w.until(r, k, "it is gone", isGone)
		w.expectNothing(k)
	})
}

func TestLeave_ResumesAfterACrashAtEachWrite(t *testing.T) {
	atEachWrite(t, func(t *testing.T, c *writes) {
		w := newWorld(t)
		k := w.applied(w.reconciler(), operatorv1.InstallModeDetached, nil)
		w.delete(k)
		w.wrap = c.wrap
		crashing := w.reconciler()
		w.until(crashing, k, "it is gone, or the process has ended", func(k *operatorv1.Klusterlet) bool { return c.crashed || k == nil })
		w.wrap = func(c client.Client) client.Client { return c }
		w.until(w.reconciler(), k, "it is gone", isGone)
		w.expectNothing(k)
	})
}

// Half of it is there when the Klusterlet is deleted.
func TestLeave_WhenOnlyAPartIsThere(t *testing.T) {
	for n := 2; n < 40; n += 6 {
		c := &writes{crashAt: n}
		t.Run(fmt.Sprintf("%d writes", n-1), func(t *testing.T) {
			w := newWorld(t)
			k := w.klusterlet(operatorv1.InstallModeDetached, nil)
			w.given(w.reconciler(), k)
			w.wrap = c.wrap
			crashing := w.reconciler()
			w.until(crashing, k, "it is applied, or the process has ended", func(k *operatorv1.Klusterlet) bool { return c.crashed || isApplied(k) })
			w.wrap = func(c client.Client) client.Client { return c }
			w.delete(k)
			w.until(w.reconciler(), k, "it is gone", isGone)
			w.expectNothing(k)
		})
	}
}
