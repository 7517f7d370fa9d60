// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package pace

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// TestPace_LimitsNamespace: requests in a loop get a twentieth of the time.
func TestPace_LimitsNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, began, worked, refused := New("answers"), time.Now(), time.Duration(0), 0
		for time.Since(began) < 10*time.Minute {
			end, err := p.Begin(t.Context(), "greedy")
			if err != nil {
				seconds, told := apierrors.SuggestsClientDelay(err)
				if !apierrors.IsTooManyRequests(err) || !told || seconds < 1 {
					t.Fatal(err)
				}
				refused++
				time.Sleep(100 * time.Millisecond)
				continue
			}
			time.Sleep(time.Second)
			worked += time.Second
			end()
		}
		if worked > 33*time.Second || worked < 25*time.Second || refused == 0 {
			t.Errorf("computed for %s of 10 minutes, refused %d times", worked, refused)
		}
		// Others do not pause for it.
		end, err := p.Begin(t.Context(), "modest")
		if err != nil {
			t.Fatal(err)
		}
		end()
	})
}

func TestPace_Serial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New("answers")
		end, err := p.Begin(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Begin(t.Context(), "a"); !apierrors.IsTooManyRequests(err) {
			t.Errorf("a second one of the namespace: %v", err)
		}
		// A request of another namespace waits, and is rejected then.
		began := time.Now()
		if _, err := p.Begin(t.Context(), "b"); !apierrors.IsTooManyRequests(err) || time.Since(began) != maxWait {
			t.Errorf("another namespace: %v after %s", err, time.Since(began))
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := p.Begin(gone, "b"); err == nil {
			t.Error("who has gone has a turn")
		}
		came := make(chan func())
		go func() {
			end, err := p.Begin(t.Context(), "b")
			if err != nil {
				t.Error(err)
			}
			came <- end
		}()
		synctest.Wait()
		end()
		(<-came)()
	})
}

// TestPace_AllowsBurst: a user who looks at a few clusters does not wait.
func TestPace_AllowsBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New("answers")
		for i := range 20 {
			end, err := p.Begin(t.Context(), "a")
			if err != nil {
				t.Fatalf("the %d. explanation: %v", i+1, err)
			}
			time.Sleep(50 * time.Millisecond)
			end()
		}
		time.Sleep(10 * time.Minute)
		// Unused shares are not saved.
		passed := 0
		for range 100 {
			if end, err := p.Begin(t.Context(), "a"); err == nil {
				passed++
				time.Sleep(50 * time.Millisecond)
				end()
			}
		}
		if passed > 25 {
			t.Errorf("%d explanations passed at once", passed)
		}
	})
}

// TestPace_Forgets: the number of recorded namespaces is limited by those that pause.
func TestPace_Forgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New("answers")
		for i := range 3 * maxPausing {
			end, err := p.Begin(t.Context(), fmt.Sprint(i))
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
			end()
		}
		if len(p.until) > maxPausing || len(p.running) > 0 {
			t.Errorf("%d namespaces are kept, and %d run", len(p.until), len(p.running))
		}
	})
}
