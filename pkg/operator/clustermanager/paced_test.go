// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"
)

// TestAttack_AHubWithConstantChangesIsRateLimited verifies that reconciles are rate-limited: each one also sends requests to the management
// cluster, which all hubs share.
func TestAttack_AHubWithConstantChangesIsRateLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lock sync.Mutex
		var looks []time.Duration
		began := time.Now()
		changed := paced(rate.NewLimiter(rate.Every(changeEach), changesAtOnce), func() {
			lock.Lock()
			defer lock.Unlock()
			looks = append(looks, time.Since(began))
		})
		for range 60_000 { // ten minutes
			changed()
			time.Sleep(10 * time.Millisecond)
		}
		synctest.Wait()
		if most := changesAtOnce + int(10*time.Minute/changeEach) + 1; len(looks) > most || len(looks) < changesAtOnce {
			t.Errorf("in ten minutes there are %d looks, want %d at most", len(looks), most)
		}
		for i := 1; i < len(looks); i++ {
			if looks[i]-looks[i-1] < settle {
				t.Errorf("a look follows another one after %s", looks[i]-looks[i-1])
			}
		}
		// A change after a time without changes causes a reconcile.
		time.Sleep(time.Hour)
		before := len(looks)
		changed()
		time.Sleep(settle)
		synctest.Wait()
		if len(looks) != before+1 {
			t.Errorf("after an hour there are %d looks at a change", len(looks)-before)
		}
	})
}

// TestPaced_NoChangeIsMissed changes a hub at all distances from a reconcile: a change that the reconcile may have missed starts another one.
func TestPaced_NoChangeIsMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var began time.Time
		changed := paced(rate.NewLimiter(rate.Inf, 1), func() { began = time.Now() })
		const step = settle / 16
		for distance := time.Duration(0); distance < 3*settle; distance += step {
			changed()
			time.Sleep(distance)
			last := time.Now()
			changed()
			time.Sleep(10 * settle)
			synctest.Wait()
			if began.Before(last) {
				t.Errorf("the last look began %s before a change that came %s after another one", last.Sub(began), distance)
			}
		}
	})
}
