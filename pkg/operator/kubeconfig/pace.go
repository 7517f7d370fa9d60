// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"fmt"
	"slices"
	"time"
)

// How often tokens are asked for, for one Secret, whatever the cluster and the writers of the Secret do.
const (
	// maxTokens may be asked for within tokensWithin.
	maxTokens    = 5
	tokensWithin = 5 * time.Minute
	// firstRetry is how long it takes after a failure, and lastRetry after many.
	firstRetry, lastRetry = 5 * time.Second, 5 * time.Minute
	// forgetAfter is longer than any of these.
	forgetAfter = 15 * time.Minute
)

// pace is what is remembered of the tokens that were asked for, for one Secret.
type pace struct {
	// asked are the times of the last ones, and last is when that was looked at.
	asked []time.Time
	last  time.Time
	// err is why the last ones have failed, with a source, and until is how long it is not tried again with that.
	err      error
	failures int
	source   string
	until    time.Time
}

// mayAsk is nil if a token may be asked for now, and counts it. Otherwise it says why not, and until when.
func (p *pace) mayAsk(now time.Time, source string) (time.Time, error) {
	if p.source != source {
		p.succeeded()
		p.source = source
	}
	// A clock that was ahead does not make it wait.
	if p.err != nil && now.Before(p.until) && p.until.Sub(now) <= 2*lastRetry {
		return p.until, p.err
	}
	p.asked = slices.DeleteFunc(p.asked, func(at time.Time) bool { return at.After(now) || now.Sub(at) >= tokensWithin })
	if len(p.asked) >= maxTokens {
		if p.err != nil { // which says more
			return p.asked[0].Add(tokensWithin), p.err
		}
		return p.asked[0].Add(tokensWithin), &Failed{Reason: ReasonTooManyTokens, Message: fmt.Sprintf(
			"%d tokens were asked for within %s, and another one is needed already: does another program change the Secret, "+
				"or the ServiceAccount?", len(p.asked), tokensWithin)}
	}
	p.asked = append(p.asked, now)
	return now, nil
}

// failed is when to try again.
func (p *pace) failed(now time.Time, source string, err error, spread float64) time.Time {
	wait := lastRetry
	if p.failures < 10 {
		wait = min(lastRetry, firstRetry<<p.failures)
	}
	p.failures++
	// What has failed together, such as when a proxy has ended, is not tried again together.
	p.source, p.err, p.until = source, err, now.Add(wait+time.Duration(spread*float64(wait)/2))
	return p.until
}

func (p *pace) succeeded() { p.err, p.failures, p.until = nil, 0, time.Time{} }
