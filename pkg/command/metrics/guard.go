// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/klog/v2"
)

const (
	// maxToken bounds the length of a token: those of service accounts have about 1,000 bytes.
	maxToken = 16 << 10
	// allowedFor and refusedFor are how long results of the API server are cached, and failedFor how long a failure is.
	allowedFor, refusedFor, failedFor = time.Minute, 10 * time.Second, time.Second
	// knownFor is the time for which a token that was allowed once has priority over those that never were.
	knownFor = 2 * time.Hour
	// most bounds each cache.
	most = 256
	// askTimeout bounds the requests for one token.
	askTimeout = 10 * time.Second
	// newTokens and newBurst limit the number of tokens, never allowed before, for which the API server gets requests: per second, and at once. Each
	// takes two requests at most.
	newTokens, newBurst = 2, 20
	// asking and reading limit the number of concurrent reviews, and of concurrent responses with metrics.
	asking, reading = 4, 8
)

// verdict is the result for a token.
type verdict int

const (
	failed verdict = iota // the API server was not asked, or did not respond
	unknown
	forbidden
	allowed
)

// answers are constant: clients learn nothing about the API server, users or limits from them.
var answers = map[verdict]struct {
	code int
	text string
}{
	failed: {http.StatusInternalServerError, "Internal Server Error"}, unknown: {http.StatusUnauthorized, "Unauthorized"}, forbidden: {http.StatusForbidden, "Forbidden"},
}

// guard allows clients that may read metrics.
type guard struct {
	// ask asks the API server.
	ask func(ctx context.Context, token string) (verdict, error)
	// key makes the keys of the caches useless to readers of the memory.
	key [sha256.Size]byte
	// kept are cached results. Unknown clients cannot fill it, as few of their tokens are reviewed.
	kept *cache.LRUExpireCache
	// known are the tokens that were allowed lately: they are reviewed however many other tokens are presented.
	known   *cache.LRUExpireCache
	fresh   *rate.Limiter
	flights singleflight.Group
	// knownSlots and freshSlots limit the number of concurrent reviews.
	knownSlots, freshSlots chan struct{}
}

func newGuard(ask func(ctx context.Context, token string) (verdict, error), clock cache.Clock) *guard {
	g := &guard{
		ask: ask, kept: cache.NewLRUExpireCacheWithClock(most, clock), known: cache.NewLRUExpireCacheWithClock(most, clock),
		fresh: rate.NewLimiter(newTokens, newBurst), knownSlots: make(chan struct{}, asking), freshSlots: make(chan struct{}, asking),
	}
	_, _ = rand.Read(g.key[:]) // never fails
	return g
}

// around calls next for clients that may read metrics, and rejects others.
func (g *guard) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given, ok := bearer(r)
		v := unknown
		if ok {
			v = g.of(r.Context(), given)
		}
		if v != allowed {
			if v == unknown {
				w.Header().Set("WWW-Authenticate", "Bearer")
			}
			http.Error(w, answers[v].text, answers[v].code)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// bearer returns the token of a request.
func bearer(r *http.Request) (token string, ok bool) {
	given := r.Header.Values("Authorization")
	if len(given) != 1 {
		return "", false
	}
	scheme, token, _ := strings.Cut(given[0], " ")
	token = strings.TrimSpace(token)
	return token, strings.EqualFold(scheme, "Bearer") && token != "" && len(token) <= maxToken && !strings.ContainsAny(token, " \t")
}

// of returns the verdict on a token: a cached one, or that of the API server. Concurrent requests with the same token share a review.
func (g *guard) of(ctx context.Context, token string) verdict {
	sum := hmac.New(sha256.New, g.key[:])
	sum.Write([]byte(token))
	key := string(sum.Sum(nil))
	if v, ok := g.cached(key); ok {
		return v
	}
	v, _, _ := g.flights.Do(key, func() (any, error) {
		if v, ok := g.cached(key); ok { // by a review that has just ended
			return v, nil
		}
		// The review is for all that wait, so it does not end with the first request.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
		defer cancel()
		return g.review(ctx, key, token), nil
	})
	return v.(verdict)
}

func (g *guard) cached(key string) (verdict, bool) {
	if v, ok := g.kept.Get(key); ok {
		return v.(verdict), true
	}
	return failed, false
}

// review asks the API server, within the limits, and caches the result.
func (g *guard) review(ctx context.Context, key, token string) verdict {
	slots := g.knownSlots
	if _, ok := g.known.Get(key); !ok {
		slots = g.freshSlots
		if !g.fresh.Allow() {
			klog.FromContext(ctx).V(2).Info("Not asking who reads metrics", "reason", "too many new tokens")
			return failed // not cached: an unknown client could fill one more cache
		}
	}
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-ctx.Done():
		return failed
	}
	v, err := g.ask(ctx, token)
	switch {
	case err != nil:
		klog.FromContext(ctx).Error(err, "Asking who reads metrics, and whether they may")
		v = failed
		g.kept.Add(key, v, failedFor)
	case v == allowed:
		g.kept.Add(key, v, allowedFor)
		g.known.Add(key, struct{}{}, knownFor)
	default:
		g.known.Remove(key)
		g.kept.Add(key, v, refusedFor)
	}
	return v
}

// exact serves GET requests for exactly the path of metrics: paths are not cleaned, and nothing is redirected.
func exact(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != Path || r.URL.RawPath != "":
			http.NotFound(w, r)
		case r.Method != http.MethodGet:
			w.Header().Set("Allow", http.MethodGet)
			http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// limitConcurrency limits the number of concurrent responses: metrics take memory while they are written.
func limitConcurrency(next http.Handler) http.Handler {
	slots := make(chan struct{}, reading)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			next.ServeHTTP(w, r)
		default:
			http.Error(w, "Too Many Requests", http.StatusTooManyRequests)
		}
	})
}
