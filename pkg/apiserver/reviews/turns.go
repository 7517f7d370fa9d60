// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package reviews

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// perUser is the largest number of concurrent reviews for one user. The front handles a thousand reviews a second on a small machine, and requests of
// one user seldom need a review, because decisions are cached.
const perUser = 4

// limiter limits the concurrent reviews for each user, so that one user does not delay all others.
type limiter struct {
	asks authorizer.Authorizer

	mu sync.Mutex
	// users has the users with pending reviews.
	users map[string]*seatQueue
}

type seatQueue struct {
	seats chan struct{}
	// length is the number of reviews that wait or have a seat.
	length int
}

// LimitPerUser returns an authorizer that calls another one at most four times concurrently for one user.
func LimitPerUser(asks authorizer.Authorizer) authorizer.Authorizer {
	t := &limiter{asks: asks, users: map[string]*seatQueue{}}
	return authorizer.AuthorizerFunc(t.authorize)
}

func (t *limiter) authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	name := ""
	if who := a.GetUser(); who != nil {
		name = who.GetName()
	}
	q := t.enter(name)
	defer t.release(name, q)
	select {
	case q.seats <- struct{}{}:
	case <-ctx.Done():
		return authorizer.DecisionNoOpinion, "", fmt.Errorf("too many permission checks for %q are in progress: %w", name, ctx.Err())
	}
	defer func() { <-q.seats }()
	return t.asks.Authorize(ctx, a)
}

func (t *limiter) enter(name string) *seatQueue {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.users[name]
	if q == nil {
		q = &seatQueue{seats: make(chan struct{}, perUser)}
		t.users[name] = q
	}
	q.length++
	return q
}

func (t *limiter) release(name string, q *seatQueue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	q.length--
	if q.length == 0 {
		delete(t.users, name)
	}
}
