// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placementexplanation

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Whoever asks in a loop takes a twentieth of the time.
func TestPace_BoundsANamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, began, worked, refused := newPace(), time.Now(), time.Duration(0), 0
		for time.Since(began) < 10*time.Minute {
			end, err := p.begin(t.Context(), "greedy")
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
		if worked > 31*time.Second || worked < 25*time.Second || refused == 0 {
			t.Errorf("computed for %s of 10 minutes, refused %d times", worked, refused)
		}
		// Others do not pause for it.
		end, err := p.begin(t.Context(), "modest")
		if err != nil {
			t.Fatal(err)
		}
		end()
	})
}

func TestPace_OneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace()
		end, err := p.begin(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.begin(t.Context(), "a"); !apierrors.IsTooManyRequests(err) {
			t.Errorf("a second one of the namespace: %v", err)
		}
		// One of another namespace waits, and then is refused.
		began := time.Now()
		if _, err := p.begin(t.Context(), "b"); !apierrors.IsTooManyRequests(err) || time.Since(began) != longestWait {
			t.Errorf("another namespace: %v after %s", err, time.Since(began))
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := p.begin(gone, "b"); err == nil {
			t.Error("who has gone has a turn")
		}
		came := make(chan func())
		go func() {
			end, err := p.begin(t.Context(), "b")
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

// What is kept of namespaces is bounded by those that pause.
func TestPace_Forgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace()
		for i := range 3 * mostPausing {
			end, err := p.begin(t.Context(), fmt.Sprint(i))
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
			end()
		}
		if len(p.until) > mostPausing {
			t.Errorf("%d namespaces are kept", len(p.until))
		}
	})
}
