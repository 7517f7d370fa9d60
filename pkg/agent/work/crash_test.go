// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/clusterhub/clusterhub/pkg/agent/work/worktest"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
)

var errCrashed = errors.New("crashed")

// TestCrash_AtEachWrite stops an agent before or after its n-th write, for every n, in the life of a work. The next agent reaches the same final
// state, and leaves no objects behind that the work had in between.
func TestCrash_AtEachWrite(t *testing.T) {
	for home, in := range map[string]func(*testing.T) *world{"cluster": newSerialWorld, "namespace": newSerialNamespaceWorld} {
		t.Run(home, func(t *testing.T) {
			t.Parallel()
			crashAtEachWrite(t, in)
		})
	}
}

func crashAtEachWrite(t *testing.T, in func(*testing.T) *world) {
	for _, when := range []string{"before", "after"} {
		for n := int64(1); ; n++ {
			crashed := false
			t.Run(fmt.Sprintf("%s write %d", when, n), func(t *testing.T) { crashed = crashAt(in(t), when, n) })
			if t.Failed() || !crashed {
				break
			}
			if n > 50 {
				t.Fatal("the agent does not stop writing")
			}
		}
	}
}

func crashAt(w *world, when string, n int64) bool {
	t := w.T
	crash := &crash{when: when, n: n, down: make(chan struct{})}
	w.around = crash.around
	stop := w.start(w.newAgent())
	// reached waits until a stage of the work's life is reached. If the agent has stopped before that, the parameter changes the hub, and
	// the next agent does the rest.
	reached := func(meanwhile func(), stage func() bool) {
		t.Helper()
		w.eventually("the stage", "reached", func() string {
			if stage() || crash.isDown() && w.around != nil {
				return "reached"
			}
			return ""
		})
		happened := false
		if crash.isDown() && w.around != nil {
			stop()
			w.around = nil
			if !stage() {
				meanwhile()
				happened = true
			}
			stop = w.start(w.newAgent())
		}
		if !happened {
			worktest.Eventually(t, "the stage is reached", stage)
			meanwhile()
		}
	}
	w.put("a", w.spec(w.configMap("cm1", "{}"), w.configMap("cm2", "{}")))
	// The spec has changed when the next agent starts: objects that the previous agent started to create must be pruned.
	reached(func() { w.put("a", w.spec(w.configMap("cm2", "{k: v}"), w.configMap("cm3", "{}"))) },
		func() bool {
			return w.said("a", workv1.WorkApplied) == "True: True True" && w.recorded("a") == "cm1 cm2"
		})
	reached(func() {}, func() bool {
		return w.said("a", workv1.WorkApplied) == "True: True True" && w.recorded("a") == "cm2 cm3"
	})
	if w.around == nil {
		w.eventually("the record", "cm2 cm3", func() string { return w.recorded("a") })
	}
	if w.get(w.target("cm1")) != nil || w.data("cm2") != "map[k:v]" || w.get(w.target("cm3")) == nil {
		t.Errorf("there are cm1: %s, cm2: %s, cm3: %s", w.data("cm1"), w.data("cm2"), w.data("cm3"))
	}
	w.delete("a")
	reached(func() {}, func() bool { return w.work("a") == nil })
	w.eventuallyGone("a")
	if w.record("a") != nil || w.get(w.target("cm2")) != nil || w.get(w.target("cm3")) != nil {
		t.Error("something was left")
	}
	return crash.isDown()
}

// crash stops all that an agent does at its n-th write.
type crash struct {
	when string
	n    int64
	down chan struct{}

	mu     sync.Mutex
	writes int64
}

func (c *crash) isDown() bool {
	select {
	case <-c.down:
		return true
	default:
		return false
	}
}

func (c *crash) around(request *http.Request, do func() (*http.Response, error)) (*http.Response, error) {
	if c.isDown() {
		return nil, errCrashed
	}
	if request.Method == http.MethodGet {
		return do()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isDown() {
		return nil, errCrashed
	}
	c.writes++
	if c.writes < c.n {
		return do()
	}
	defer close(c.down)
	if c.when == "after" {
		if response, err := do(); err == nil {
			response.Body.Close()
		}
	}
	return nil, errCrashed
}
