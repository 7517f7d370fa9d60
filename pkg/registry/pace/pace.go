// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pace limits the cost of requests that compute much and store nothing.
package pace

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// share is the fraction of a processor for the responses of one namespace, as for the scheduling of its placements: a twentieth.
	share = 20
	// ahead is the time whose share a namespace can use at once: a second of computing. A user who looks at a few clusters does not wait.
	ahead = 20 * time.Second
	// maxWait is the maximum time that a request waits for others.
	maxWait = 5 * time.Second
	// maxPausing is the number of recorded namespaces above which those are removed whose share is fully restored.
	maxPausing = 1000
)

// Pace limits namespaces and not users: a user who owns a namespace can create any number of ServiceAccounts in it, but no namespaces. At any time
// one response is computed on a server.
type Pace struct {
	what    string
	now     func() time.Time
	waiting chan struct{}

	mu sync.Mutex
	// until is the time whose share each namespace has used, if it is in the future.
	until map[string]time.Time
	// running are the namespaces with a response that is computed, or waits for its turn.
	running map[string]bool
}

// New returns an independent pace. what is the plural of what is computed, as in "explanations of placements".
func New(what string) *Pace {
	return &Pace{what: what, now: time.Now, waiting: make(chan struct{}, 1), until: map[string]time.Time{}, running: map[string]bool{}}
}

// Begin waits for the turn of a namespace, or returns a 429.
func (p *Pace) Begin(ctx context.Context, namespace string) (end func(), err error) {
	if err := p.enter(namespace); err != nil {
		return nil, err
	}
	timeout := time.NewTimer(maxWait)
	defer timeout.Stop()
	select {
	case p.waiting <- struct{}{}:
	case <-ctx.Done():
		p.release(namespace, 0)
		return nil, ctx.Err()
	case <-timeout.C:
		p.release(namespace, 0)
		return nil, apierrors.NewTooManyRequests(fmt.Sprintf("the server computes %s for others: try again later", p.what), 1)
	}
	began := p.now()
	return func() {
		<-p.waiting
		p.release(namespace, p.now().Sub(began))
	}, nil
}

func (p *Pace) enter(namespace string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if p.running[namespace] {
		return apierrors.NewTooManyRequests(fmt.Sprintf("%s of the namespace %s are being computed already: try again later", p.what, namespace), 1)
	}
	if until := p.until[namespace]; until.After(now.Add(ahead)) {
		seconds := int(math.Ceil((until.Sub(now) - ahead).Seconds()))
		return apierrors.NewTooManyRequests(fmt.Sprintf("%s of the namespace %s can be computed again in %d s: their computing time is limited "+
			"for each namespace", p.what, namespace, seconds), seconds)
	}
	if len(p.until) >= maxPausing {
		for other, until := range p.until {
			if !now.Before(until) {
				delete(p.until, other)
			}
		}
	}
	p.running[namespace] = true
	return nil
}

func (p *Pace) release(namespace string, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.running, namespace)
	if took == 0 {
		return
	}
	from := p.now().Add(-took)
	if until := p.until[namespace]; until.After(from) {
		from = until
	}
	p.until[namespace] = from.Add(share * took)
}
