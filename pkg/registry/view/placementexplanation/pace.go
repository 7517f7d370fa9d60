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
	// pauses is for how long a namespace pauses, in terms of what its last explanation took: then none has more than a twentieth of a
	// processor, as when its placements are scheduled.
	pauses = 19
	// longestWait is how long a request waits for others.
	longestWait = 5 * time.Second
	// mostPausing is how many namespaces are kept before those are looked for that pause no more.
	mostPausing = 1000
)

// pace bounds what explanations cost. It is by namespaces and not by users: whoever runs a namespace can make as many ServiceAccounts there
// as they like, but no namespaces. At any time one explanation is computed on a server.
type pace struct {
	now  func() time.Time
	turn chan struct{}

	mu sync.Mutex
	// until has the namespaces that pause, and those whose explanation is computed, with the zero time.
	until map[string]time.Time
}

func newPace() *pace {
	return &pace{now: time.Now, turn: make(chan struct{}, 1), until: map[string]time.Time{}}
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
	until, known := p.until[namespace]
	switch {
	case known && until.IsZero():
		return apierrors.NewTooManyRequests(fmt.Sprintf("another placement of the namespace %s is being explained: try again later", namespace), 1)
	case now.Before(until):
		seconds := int(math.Ceil(until.Sub(now).Seconds()))
		return apierrors.NewTooManyRequests(fmt.Sprintf("placements of the namespace %s may be explained again in %d s: what that takes is bounded "+
			"for each namespace", namespace, seconds), seconds)
	}
	if len(p.until) >= mostPausing {
		for other, until := range p.until {
			if !until.IsZero() && !now.Before(until) {
				delete(p.until, other)
			}
		}
	}
	p.until[namespace] = time.Time{}
	return nil
}

func (p *pace) leave(namespace string, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until[namespace] = p.now().Add(pauses * took)
}
