// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package awsirsa

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
)

// newRetryer returns a retryer that retries a call once, and soon. A worker that waits for AWS blocks other clusters; the queue's backoff delays
// only its own.
func newRetryer() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = 2
		o.MaxBackoff = 100 * time.Millisecond
	})
}

// AWS limits the rate of each operation, and does not publish the limits. So they are learned: the first call that is throttled gives its operation
// a pace, each later one makes it slower, and time makes it faster again. retry.AdaptiveMode has one pace for all operations.
const (
	// fastest is the maximum number of calls per second once one has been throttled, and slowest the minimum.
	fastest, slowest = 20.0, 0.5
	// slower is the factor of the pace after a throttled call, and faster its increase per second.
	slower, faster = 0.7, 0.05
)

// errThrottled replaces the error of the context: AWS has responded.
var errThrottled = errors.New("AWS throttles these calls, and this one was not sent in time")

// paced is a Retryer that delays calls by the pace of their operation. All clients of an account share it.
type paced struct {
	aws.RetryerV2

	mu sync.Mutex
	of map[string]*tokenBucket
}

var _ aws.RetryerV2 = &paced{}

func newPaced() *paced {
	return &paced{RetryerV2: newRetryer().(aws.RetryerV2), of: map[string]*tokenBucket{}}
}

// GetAttemptToken implements aws.RetryerV2.
func (p *paced) GetAttemptToken(ctx context.Context) (func(error) error, error) {
	operation := awsmiddleware.GetServiceID(ctx) + " " + awsmiddleware.GetOperationName(ctx)
	p.mu.Lock()
	of := p.of[operation]
	if of == nil {
		of = newPace()
		p.of[operation] = of
	}
	p.mu.Unlock()
	if err := of.wait(ctx); err != nil {
		return nil, err
	}
	asked := time.Now()
	return func(err error) error {
		if retry.IsErrorThrottles(retry.DefaultThrottles).IsErrorThrottle(err).Bool() {
			of.throttled(asked)
		}
		return nil
	}, nil
}

// tokenBucket is the pace of one operation: a token bucket for one token, once a call has been throttled.
type tokenBucket struct {
	// waiting is held by the call that waits for the token; other calls wait for turn.
	waiting chan struct{}

	mu sync.Mutex
	// cut is the pace that was set when a call was throttled last, at the time since. It is 0 before.
	cut   float64
	since time.Time
	// next is the time of the next token.
	next time.Time
}

func newPace() *tokenBucket { return &tokenBucket{waiting: make(chan struct{}, 1)} }

// at returns the pace at a time.
func (p *tokenBucket) at(now time.Time) float64 {
	return min(fastest, p.cut+faster*now.Sub(p.since).Seconds())
}

// take takes the token, or returns the time until there is one.
func (p *tokenBucket) take() (wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.cut == 0 {
		return 0
	}
	if wait := p.next.Sub(now); wait > 0 {
		return wait
	}
	p.next = now.Add(time.Duration(float64(time.Second) / p.at(now)))
	return 0
}

func (p *tokenBucket) wait(ctx context.Context) error {
	select {
	case p.waiting <- struct{}{}:
	case <-ctx.Done():
		return errThrottled
	}
	defer func() { <-p.waiting }()
	for wait := p.take(); wait > 0; wait = p.take() {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return errThrottled
		}
	}
	return nil
}

// throttled slows down, unless that was done after the call was sent.
func (p *tokenBucket) throttled(sent time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	switch {
	case p.cut == 0:
		p.cut = fastest * slower
	case sent.Before(p.since):
		return
	default:
		p.cut = max(slowest, p.at(now)*slower)
	}
	p.since = now
	p.next = now.Add(time.Duration(float64(time.Second) / p.cut))
}
