// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package reviews

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// perUser is how many answers are awaited for one user at a time. The front answers a thousand questions a second on a
// small machine, and what one user does asks seldom: answers are kept.
const perUser = 4

// turns lets the questions about each user wait for each other, so that one user's do not make all others wait.
type turns struct {
	asks authorizer.Authorizer

	mu sync.Mutex
	// users has those with questions under way.
	users map[string]*queue
}

type queue struct {
	seats chan struct{}
	// length counts those who wait or have a seat.
	length int
}

// TakeTurns returns an authorizer that asks another at most four questions about one user at a time.
func TakeTurns(asks authorizer.Authorizer) authorizer.Authorizer {
	t := &turns{asks: asks, users: map[string]*queue{}}
	return authorizer.AuthorizerFunc(t.authorize)
}

func (t *turns) authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	name := ""
	if who := a.GetUser(); who != nil {
		name = who.GetName()
	}
	q := t.enter(name)
	defer t.leave(name, q)
	select {
	case q.seats <- struct{}{}:
	case <-ctx.Done():
		return authorizer.DecisionNoOpinion, "", fmt.Errorf("too many questions about what %q may do are being asked: %w", name, ctx.Err())
	}
	defer func() { <-q.seats }()
	return t.asks.Authorize(ctx, a)
}

func (t *turns) enter(name string) *queue {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.users[name]
	if q == nil {
		q = &queue{seats: make(chan struct{}, perUser)}
		t.users[name] = q
	}
	q.length++
	return q
}

func (t *turns) leave(name string, q *queue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if q.length--; q.length == 0 {
		delete(t.users, name)
	}
}
