// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package mint

import (
	"fmt"
	"slices"
	"time"
)

// Limits of token requests for one Secret, whatever the cluster and the writers of the Secret do.
const (
	// maxTokens is the maximum number of requests within tokensWithin.
	maxTokens    = 5
	tokensWithin = 5 * time.Minute
	// firstRetry is the delay after a failure, and lastRetry the delay after many.
	firstRetry, lastRetry = 5 * time.Second, 5 * time.Minute
	// forgetAfter is longer than any of these.
	forgetAfter = 15 * time.Minute
)

// requestState has the state of token requests for one Secret.
type requestState struct {
	// asked are the times of recent requests, and last is the time of the last check.
	asked []time.Time
	last  time.Time
	// err is the error of the last attempts, with source, and until is when the next attempt with that source may be made.
	err      error
	failures int
	source   string
	until    time.Time
}

// allowRequest returns nil and counts the request if a token may be requested now. Otherwise it returns why not, and until when.
func (p *requestState) allowRequest(now time.Time, source string) (time.Time, error) {
	if p.source != source {
		p.succeeded()
		p.source = source
	}
	// The delay does not apply if the clock was ahead.
	if p.err != nil && now.Before(p.until) && p.until.Sub(now) <= 2*lastRetry {
		return p.until, p.err
	}
	p.asked = slices.DeleteFunc(p.asked, func(at time.Time) bool { return at.After(now) || now.Sub(at) >= tokensWithin })
	if len(p.asked) >= maxTokens {
		if p.err != nil { // it is more informative
			return p.asked[0].Add(tokensWithin), p.err
		}
		return p.asked[0].Add(tokensWithin), &Failed{Reason: ReasonTooManyTokens, Message: fmt.Sprintf(
			"%d tokens were requested within %s, and another one is already needed: does another program change the Secret, "+
				"or the ServiceAccount?", len(p.asked), tokensWithin)}
	}
	p.asked = append(p.asked, now)
	return now, nil
}

// failed records a failure, and returns when to try again.
func (p *requestState) failed(now time.Time, source string, err error, spread float64) time.Time {
	wait := lastRetry
	if p.failures < 10 {
		wait = min(lastRetry, firstRetry<<p.failures)
	}
	p.failures++
	// Attempts that failed together, such as when a proxy stopped, are not retried together.
	p.source, p.err, p.until = source, err, now.Add(wait+time.Duration(spread*float64(wait)/2))
	return p.until
}

func (p *requestState) succeeded() { p.err, p.failures, p.until = nil, 0, time.Time{} }
