// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteracceptance

import (
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
)

const (
	// firstRetry is the delay after the first failure of a driver for a cluster. It doubles with each failure.
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
)

// paces are the times at which drivers may be called. Clusters do not affect each other.
type paces struct {
	clock clock.PassiveClock

	mu sync.Mutex
	of map[string]retryState
}

// retryState is the pace of one cluster.
type retryState struct {
	// what is the operation. A different operation may be tried at once.
	what     string
	failures int
	next     time.Time
	// last is the result of the last try.
	last error
	// check is the time of the next check of the cluster's identity; zero until it is known.
	check time.Time
	// nextCheck is the time of the next check of what is left in a cluster that is being deleted.
	nextCheck time.Time
}

func newPaces(clock clock.PassiveClock) *paces {
	return &paces{clock: clock, of: map[string]retryState{}}
}

// wait returns the delay of the next try, and the result of the last.
func (p *paces) wait(cluster, what string) (time.Duration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.of[cluster]; s.what == what {
		return max(0, s.next.Sub(p.clock.Now())), s.last
	}
	return 0, nil
}

// failed returns the delay of the next try: the longest for an error that a retry does not fix. It has a random part, so that clusters that failed
// together, because their cloud was overloaded, do not retry together.
func (p *paces) failed(cluster, what string, err error) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.of[cluster]
	if s.what != what {
		s.what, s.failures = what, 0
	}
	wait := lastRetry
	if s.failures < 16 && !errors.Is(err, driver.ErrTerminal) {
		wait = min(lastRetry, firstRetry<<s.failures)
	}
	wait += rand.N(wait / 2)
	s.failures++
	s.last, s.next = err, p.clock.Now().Add(wait)
	p.of[cluster] = s
	return wait
}

// succeeded ends the backoff.
func (p *paces) succeeded(cluster string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.of[cluster]; s.what != "" {
		p.of[cluster] = retryState{check: s.check}
	}
}

// untilCheck returns the time until the next check of a cluster's identity, or 0 if it is due. The first check is a whole interval after the grant.
func (p *paces) untilCheck(cluster string, granted time.Time, interval time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	s := p.of[cluster]
	if s.check.IsZero() {
		after := now
		if first := granted.Add(interval); first.After(after) {
			after = first
		}
		s.check = slot(cluster, interval, after)
		p.of[cluster] = s
	}
	return max(0, s.check.Sub(now))
}

// checked moves the check of a cluster to its next slot.
func (p *paces) checked(cluster string, interval time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.of[cluster]
	s.check = slot(cluster, interval, p.clock.Now())
	p.of[cluster] = s
}

// untilLook returns the time until the next check of what is left in a cluster, and checkAfter sets it.
func (p *paces) untilLook(cluster string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(0, p.of[cluster].nextCheck.Sub(p.clock.Now()))
}

func (p *paces) checkAfter(cluster string, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.of[cluster]
	s.nextCheck = p.clock.Now().Add(wait)
	p.of[cluster] = s
}

// forget deletes the state of a cluster.
func (p *paces) forget(cluster string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.of, cluster)
}

// slot returns the first time after the given one at which a cluster is checked. There is one in every interval, and its offset follows from the
// name alone: checks are spread evenly, and another process neither repeats nor bunches them.
func slot(cluster string, interval time.Duration, after time.Time) time.Time {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(cluster))
	// The last bits of neighbouring names are close to each other; multiplying spreads them.
	offset := int64((hash.Sum64() * 0x9E3779B97F4A7C15) >> 1 % uint64(interval))
	n := (after.UnixNano() - offset) / int64(interval)
	next := time.Unix(0, (n+1)*int64(interval)+offset)
	if !next.After(after) {
		next = next.Add(interval)
	}
	return next
}
