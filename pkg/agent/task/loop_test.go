// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// looped runs a loop for a while, and returns the seconds at which Do was called.
func looped(t *testing.T, l *Loop, d time.Duration) (at []int, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	began, do := time.Now(), l.Do
	l.Do = func(ctx context.Context) error {
		at = append(at, int(time.Since(began).Seconds()))
		return do(ctx)
	}
	l.Random, l.Timeout = func() float64 { return 0 }, time.Minute
	if l.Interval == nil {
		l.Interval = func() time.Duration { return 10 * time.Second }
	}
	err = l.Run(ctx)
	return at, err
}

func TestLoop_RunsAtIntervalAndRetriesSooner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failures := 5
		at, err := looped(t, &Loop{What: "x", Do: func(context.Context) error {
			failures--
			if failures >= 0 {
				return errors.New("not yet")
			}
			return nil
		}}, time.Minute)
		if want := []int{0, 1, 3, 7, 15, 25, 35, 45, 55}; !slices.Equal(at, want) || err != nil {
			t.Errorf("it went at %v, want %v; %v", at, want, err)
		}
	})
}

func TestLoop_RetryAfterIsLimitedByInterval(t *testing.T) {
	for seconds, want := range map[int][]int{0: {0, 1, 3, 7, 15, 25}, 5: {0, 5, 10, 15, 23, 33}, 3600: {0, 10, 20, 30, 40, 50}} {
		synctest.Test(t, func(t *testing.T) {
			at, err := looped(t, &Loop{What: "x", Do: func(context.Context) error {
				return fmt.Errorf("writing: %w", apierrors.NewTooManyRequests("later", seconds))
			}}, time.Minute)
			if !slices.Equal(at[:6], want) || err != nil {
				t.Errorf("with %d s it went at %v, want %v; %v", seconds, at, want, err)
			}
		})
	}
}

func TestLoop_CoalescesEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		news := make(chan struct{}, 1)
		go func() {
			for range 60 {
				select {
				case news <- struct{}{}:
				default:
				}
				time.Sleep(time.Second)
			}
		}()
		at, _ := looped(t, &Loop{What: "x", Do: func(context.Context) error { return nil }, News: news, Pause: 3 * time.Second}, 9500*time.Millisecond)
		if want := []int{0, 3, 6, 9}; !slices.Equal(at, want) {
			t.Errorf("it went at %v, want %v", at, want)
		}
		time.Sleep(time.Minute)
	})
}

func TestLoop_RunTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cut error
		at, err := looped(t, &Loop{What: "x", Do: func(ctx context.Context) error {
			<-ctx.Done()
			cut = ctx.Err()
			return Over(errors.New("lost"))
		}}, time.Hour)
		if !errors.Is(cut, context.DeadlineExceeded) || len(at) != 1 || err == nil {
			t.Errorf("it went %d times, was cut off by %v, and ended with %v", len(at), cut, err)
		}
	})
}
