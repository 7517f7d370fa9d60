// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
)

// asked is a guard for an API server that knows the token "reader", with the number of requests to it.
type asked struct {
	*guard
	clock *testingclock.FakeClock
	count atomic.Int32

	mu      sync.Mutex
	verdict verdict
	err     error
}

func newAsked() *asked {
	a := &asked{clock: testingclock.NewFakeClock(time.Now()), verdict: allowed}
	a.guard = newGuard(func(_ context.Context, token string) (verdict, error) {
		a.count.Add(1)
		a.mu.Lock()
		defer a.mu.Unlock()
		if token != "reader" {
			return unknown, nil
		}
		return a.verdict, a.err
	}, a.clock)
	return a
}

func (a *asked) answers(v verdict, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.verdict, a.err = v, err
}

func (a *asked) get(token string) int {
	r := httptest.NewRequest(http.MethodGet, Path, nil)
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	a.around(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "metrics") })).ServeHTTP(w, r)
	return w.Code
}

// step is one request for metrics: after some time, with the API server's verdict at that time.
type step struct {
	after   time.Duration
	verdict verdict
	err     error
	want    int
	asked   int32
	// known is whether the token was allowed before, and not rejected since.
	known bool
}

func TestGuard_CachesAnswers(t *testing.T) {
	away := errors.New("away")
	for name, steps := range map[string][]step{
		"a right that is taken away": {
			{0, allowed, nil, 200, 1, true}, {30 * time.Second, forbidden, nil, 200, 1, true}, {31 * time.Second, forbidden, nil, 403, 2, false},
		},
		"a right that is given": {
			{0, forbidden, nil, 403, 1, false}, {5 * time.Second, allowed, nil, 403, 1, false}, {6 * time.Second, allowed, nil, 200, 2, true},
		},
		"a token that is revoked": {
			{0, allowed, nil, 200, 1, true}, {61 * time.Second, unknown, nil, 401, 2, false}, {time.Second, allowed, nil, 401, 2, false},
		},
		"an API server that is away": {
			{0, allowed, away, 500, 1, false}, {time.Second / 2, allowed, nil, 500, 1, false}, {time.Second, allowed, nil, 200, 2, true},
		},
		"an API server that goes away": {
			{0, allowed, nil, 200, 1, true}, {30 * time.Second, allowed, away, 200, 1, true}, {31 * time.Second, allowed, away, 500, 2, true},
		},
	} {
		a := newAsked()
		for i, s := range steps {
			a.clock.Step(s.after)
			a.answers(s.verdict, s.err)
			if got := a.get("reader"); got != s.want || a.count.Load() != s.asked {
				t.Errorf("%s, step %d: status %d after %d questions, want %d after %d", name, i, got, a.count.Load(), s.want, s.asked)
			}
			if known := len(a.known.Keys()) == 1; known != s.known {
				t.Errorf("%s, step %d: the token is one of those that are asked about first: %t, want %t", name, i, known, s.known)
			}
		}
	}
}

// Unknown tokens cost the API server little, and do not affect the reader.
func TestGuard_ManyTokensCauseFewReviews(t *testing.T) {
	a := newAsked()
	if got := a.get("reader"); got != http.StatusOK {
		t.Fatalf("the reader gets %d", got)
	}
	begun, flood := time.Now(), func() {
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				for j := range 100 {
					if got := a.get(fmt.Sprintf("token-%d-%d", i, j)); got != http.StatusUnauthorized && got != http.StatusInternalServerError {
						t.Errorf("a stranger gets %d", got)
					}
				}
			})
		}
		all.Wait()
	}
	flood()
	before := a.count.Load()
	if got := a.get("reader"); got != http.StatusOK || a.count.Load() != before {
		t.Errorf("the answer about the reader is gone: status %d, %d questions more", got, a.count.Load()-before)
	}
	// The reader's token is reviewed in spite of them, when the cached result has expired.
	a.clock.Step(2 * allowedFor)
	if got := a.get("reader"); got != http.StatusOK || a.count.Load() != before+1 {
		t.Errorf("the reader gets %d after %d questions more, want 1", got, a.count.Load()-before)
	}
	flood()
	if most := int32(newBurst + newTokens*(1+int(time.Since(begun).Seconds())) + 2); a.count.Load() > most {
		t.Errorf("4,000 tokens made %d questions, want %d at most", a.count.Load(), most)
	}
	for name, n := range map[string]int{"kept": len(a.kept.Keys()), "known": len(a.known.Keys())} {
		if n > most {
			t.Errorf("the cache %s has %d entries", name, n)
		}
	}
}

func TestGuard_CoalescesReviews(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	var count, inside atomic.Int32
	g := newGuard(func(context.Context, string) (verdict, error) {
		if count.Add(1) == 1 {
			close(begun)
		}
		<-end
		return allowed, nil
	}, testingclock.NewFakeClock(time.Now()))
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			inside.Add(1)
			if v := g.of(t.Context(), "reader"); v != allowed {
				t.Errorf("the verdict is %d", v)
			}
		})
	}
	<-begun
	for inside.Load() < 50 {
		time.Sleep(time.Millisecond)
	}
	close(end)
	all.Wait()
	if count.Load() != 1 {
		t.Errorf("%d questions about one token", count.Load())
	}
}

// A review is for all that wait: it continues when the first request has ended.
func TestGuard_ReviewOutlivesRequest(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	g := newGuard(func(ctx context.Context, _ string) (verdict, error) {
		cancel()
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("it has no end")
		}
		return allowed, ctx.Err()
	}, testingclock.NewFakeClock(time.Now()))
	if v := g.of(ctx, "reader"); v != allowed {
		t.Errorf("the verdict is %d", v)
	}
}

func TestGuard_LimitsConcurrentReviews(t *testing.T) {
	var now, top atomic.Int32
	g := newGuard(func(context.Context, string) (verdict, error) {
		n := now.Add(1)
		defer now.Add(-1)
		for before := top.Load(); n > before && !top.CompareAndSwap(before, n); before = top.Load() {
		}
		time.Sleep(5 * time.Millisecond)
		return unknown, nil
	}, testingclock.NewFakeClock(time.Now()))
	var all sync.WaitGroup
	for i := range newBurst {
		all.Go(func() { g.of(t.Context(), fmt.Sprint(i)) })
	}
	all.Wait()
	if top.Load() > asking || top.Load() == 0 {
		t.Errorf("%d questions at once, want %d at most", top.Load(), asking)
	}
}
