// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placementexplanation

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// share is the part of a processor that explanations of one namespace have, as when its placements are scheduled: a twentieth.
	share = 20
	// ahead is the time whose share a namespace can take at once: a second of computing. Who looks at a few clusters does not wait.
	ahead = 20 * time.Second
	// longestWait is how long a request waits for others.
	longestWait = 5 * time.Second
	// mostPausing is how many namespaces are kept before those are looked for whose share is whole again.
	mostPausing = 1000
)

// pace bounds what explanations cost. It is by namespaces and not by users: whoever runs a namespace can make as many ServiceAccounts there
// as they like, but no namespaces. At any time one explanation is computed on a server.
type pace struct {
	now  func() time.Time
	turn chan struct{}

	mu sync.Mutex
	// until is the time whose share each namespace has taken, if that is to come.
	until map[string]time.Time
	// running are the namespaces of which an explanation is computed, or waits to be.
	running map[string]bool
}

func newPace() *pace {
	return &pace{now: time.Now, turn: make(chan struct{}, 1), until: map[string]time.Time{}, running: map[string]bool{}}
}

// begin waits for the turn of a namespace, or refuses.
func (p *pace) begin(ctx context.Context, namespace string) (end func(), err error) {
	if err := p.enter(namespace); err != nil {
		return nil, err
	}
	timeout := time.NewTimer(longestWait)
	defer timeout.Stop()
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		p.leave(namespace, 0)
		return nil, ctx.Err()
	case <-timeout.C:
		p.leave(namespace, 0)
		return nil, apierrors.NewTooManyRequests("the server explains placements of others: try again later", 1)
	}
	began := p.now()
	return func() {
		<-p.turn
		p.leave(namespace, p.now().Sub(began))
	}, nil
}

func (p *pace) enter(namespace string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if p.running[namespace] {
		return apierrors.NewTooManyRequests(fmt.Sprintf("another placement of the namespace %s is being explained: try again later", namespace), 1)
	}
	if until := p.until[namespace]; until.After(now.Add(ahead)) {
		seconds := int(math.Ceil((until.Sub(now) - ahead).Seconds()))
		return apierrors.NewTooManyRequests(fmt.Sprintf("placements of the namespace %s may be explained again in %d s: what that takes is bounded "+
			"for each namespace", namespace, seconds), seconds)
	}
	if len(p.until) >= mostPausing {
		for other, until := range p.until {
			if !now.Before(until) {
				delete(p.until, other)
			}
		}
	}
	p.running[namespace] = true
	return nil
}

func (p *pace) leave(namespace string, took time.Duration) {
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
