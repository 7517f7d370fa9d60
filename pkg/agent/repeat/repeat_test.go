// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package repeat

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestJittered_ShortensByAtMostAQuarter(t *testing.T) {
	for _, random := range []float64{0, 0.3, 0.999999} {
		if got := Jittered(time.Minute, func() float64 { return random }); got > time.Minute || got < 45*time.Second {
			t.Errorf("with %v a minute became %s", random, got)
		}
	}
}

func TestBackoff_DoublesUpToLimitAndResets(t *testing.T) {
	b := Backoff{Shortest: time.Second, Longest: 3 * time.Second, Random: func() float64 { return 0 }}
	got := []time.Duration{b.Next(), b.Next(), b.Next(), b.Next()}
	b.Reset()
	got = append(got, b.Next())
	if want := []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 3 * time.Second, time.Second}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSaid_LimitsRepetition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Said{}
		for i, c := range []struct {
			subject, text string
			after         time.Duration
			want          bool
		}{
			{"a", "", 0, false}, {"a", "x", 0, true}, {"a", "x", time.Minute, false}, {"b", "x", 0, true}, {"a", "y", 0, true},
			{"a", "y", repeatAfter, true}, {"a", "", 0, true}, {"a", "", repeatAfter, false},
		} {
			time.Sleep(c.after)
			if got := s.Again(c.subject, c.text); got != c.want {
				t.Errorf("%d: %q about %q is due: %t", i, c.text, c.subject, got)
			}
		}
	})
}
