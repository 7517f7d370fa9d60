// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package await

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestUntil_BacksOff verifies that a condition that holds soon is detected soon, and that one that takes long is polled once a second.
func TestUntil_BacksOff(t *testing.T) {
	for after, most := range map[time.Duration]struct {
		looks int
		late  time.Duration
	}{
		0:                      {1, 0},
		200 * time.Millisecond: {5, 60 * time.Millisecond},
		2 * time.Second:        {20, 250 * time.Millisecond},
		time.Minute:            {90, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			began, looks := time.Now(), 0
			if err := Until(t.Context(), 2*time.Minute, func(context.Context) (bool, error) {
				looks++
				return time.Since(began) >= after, nil
			}); err != nil {
				t.Fatal(err)
			}
			if late := time.Since(began) - after; looks > most.looks || late > most.late {
				t.Errorf("what holds after %s was seen %s late, after %d looks; want %s and %d at most", after, late, looks, most.late, most.looks)
			}
		})
	}
}

func TestUntil_Ends(t *testing.T) {
	broken := errors.New("broken")
	for want, holds := range map[error]func(context.Context) (bool, error){
		broken:                   func(context.Context) (bool, error) { return false, broken },
		context.DeadlineExceeded: func(context.Context) (bool, error) { return false, nil },
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			err := Until(t.Context(), 10*time.Second, holds)
			if took := time.Since(began); !errors.Is(err, want) || took > 10*time.Second {
				t.Errorf("it has ended with %v after %s, want %v", err, took, want)
			}
		})
	}
}
