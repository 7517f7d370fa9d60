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
	// firstRetry is how long after it has failed a driver is called again for a cluster. It doubles with each failure.
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
)

// paces say when drivers may be called. Clusters wait for themselves only.
type paces struct {
	clock clock.PassiveClock

	mu sync.Mutex
	of map[string]pace
}

// pace is that of one cluster.
type pace struct {
	// what is being tried. Something else may be tried at once.
	what     string
	failures int
	next     time.Time
	// last is what came of the last try.
	last error
	// check is when the cluster's identity is to be checked; zero until that is known.
	check time.Time
	// look is when it is looked again at what is left in the cluster, which is being deleted.
	look time.Time
}

func newPaces(clock clock.PassiveClock) *paces { return &paces{clock: clock, of: map[string]pace{}} }

// wait returns how long a try has to be put off, and what came of the last.
func (p *paces) wait(cluster, what string) (time.Duration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.of[cluster]; s.what == what {
		return max(0, s.next.Sub(p.clock.Now())), s.last
	}
	return 0, nil
}

// failed returns how long the next try has to be put off: the longest for an error that trying again does not mend. It
// differs by chance: clusters that failed together, because their cloud was too busy, do not come again together.
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
		p.of[cluster] = pace{check: s.check}
	}
}

// untilCheck returns how long it is until the identity of a cluster is to be checked, 0 when it is due. The first check
// is a whole interval after the grant.
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

// untilLook returns how long it is until it is looked again at what is left in a cluster, and lookIn puts that off.
func (p *paces) untilLook(cluster string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(0, p.of[cluster].look.Sub(p.clock.Now()))
}

func (p *paces) lookIn(cluster string, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.of[cluster]
	s.look = p.clock.Now().Add(wait)
	p.of[cluster] = s
}

// forget drops all that is known of a cluster.
func (p *paces) forget(cluster string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.of, cluster)
}

// slot returns the next time after another at which a cluster is checked. There is one in every interval, and where it
// lies follows from the name alone: checks are spread evenly, and another process neither repeats nor bunches them.
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
