// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteracceptance

import (
	"context"
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

const (
	// firstRetry is the delay after the first failure of a driver for a cluster. It doubles with each failure.
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
)

// paces are the times at which drivers may be called. Clusters do not affect each other.
type paces struct {
	clock clock.PassiveClock

	mu     sync.Mutex
	states map[string]retryState
}

// pace is the times for one cluster.
type pace struct {
	*paces
	cluster string
}

// retryState is the state of one cluster.
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
	return &paces{clock: clock, states: map[string]retryState{}}
}

func (p *paces) of(cluster string) pace { return pace{p, cluster} }

// wait returns the delay of the next try, and the result of the last.
func (p pace) wait(what string) (time.Duration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.states[p.cluster]; s.what == what {
		return max(0, s.next.Sub(p.clock.Now())), s.last
	}
	return 0, nil
}

// failed returns the delay of the next try: the longest for an error that a retry does not fix. It has a random part, so that clusters that failed
// together, because their cloud was overloaded, do not retry together.
func (p pace) failed(what string, err error) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.states[p.cluster]
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
	p.states[p.cluster] = s
	return wait
}

// succeeded ends the backoff.
func (p pace) succeeded() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.states[p.cluster]; s.what != "" {
		p.states[p.cluster] = retryState{check: s.check}
	}
}

// untilCheck returns the time until the next check of the cluster's identity, or 0 if it is due. The first check is a whole interval after the grant.
func (p pace) untilCheck(granted time.Time, interval time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	s := p.states[p.cluster]
	if s.check.IsZero() {
		after := now
		if first := granted.Add(interval); first.After(after) {
			after = first
		}
		s.check = slot(p.cluster, interval, after)
		p.states[p.cluster] = s
	}
	return max(0, s.check.Sub(now))
}

// checked moves the check of the cluster to its next slot.
func (p pace) checked(interval time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.states[p.cluster]
	s.check = slot(p.cluster, interval, p.clock.Now())
	p.states[p.cluster] = s
}

// untilLeftCheck returns the time until the next check of what is left in a cluster that is being deleted, or 0 if it is due.
func (p pace) untilLeftCheck() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(0, p.states[p.cluster].nextCheck.Sub(p.clock.Now()))
}

// checkLeftAfter sets the time of the next check of what is left in a cluster that is being deleted.
func (p pace) checkLeftAfter(wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.states[p.cluster]
	s.nextCheck = p.clock.Now().Add(wait)
	p.states[p.cluster] = s
}

// forget deletes the state of the cluster.
func (p pace) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.states, p.cluster)
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

// callLimits limits the concurrent calls, by the name of the driver.
type callLimits map[string]chan struct{}

func newCallLimits(drivers driver.Drivers) callLimits {
	limits := callLimits{}
	for _, driver := range drivers {
		limits[driver.Name()] = make(chan struct{}, callers)
	}
	return limits
}

// call calls a driver, unless it has the maximum number of calls in progress.
func (l callLimits) call(ctx context.Context, driver driver.Driver, do func(context.Context) error) error {
	busy := l[driver.Name()]
	select {
	case busy <- struct{}{}:
	case <-time.After(callPatience):
		return kit.Requeue(busyDriver + rand.N(busyDriver))
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-busy }()
	ctx, cancel := context.WithTimeout(ctx, driverTimeout)
	defer cancel()
	return do(ctx)
}
