// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"github.com/clusterhub/clusterhub/test/fakeaws/iampolicy"
	"time"
)

// Limit is a token bucket: a burst, and a rate per second.
type Limit struct {
	Burst     int
	PerSecond float64
}

// Limits are the limits of operations, such as iam:CreateRole or iam:*, for each account and, except for IAM, for each region. The longest pattern
// that matches is used. Operations that match one pattern of Shared share one bucket.
type Limits struct {
	Each   map[string]Limit
	Shared map[string]Limit
}

// AWSLimits returns AWS's limits, as far as they are known.
//
//   - STS: "IAM and AWS STS quotas" of the IAM User Guide has 600 a second for an account and a region, which all signed operations share.
//     AssumeRoleWithWebIdentity is not signed.
//   - IAM: "How to monitor and query IAM resources at scale, part 2" of the AWS Security Blog states that each operation has a token bucket of
//     its own, without numbers. The numbers here are assumed, at the low end of what users report.
//   - EKS: "Amazon EKS service quotas" has none for the operations of access entries. The numbers are assumed.
func AWSLimits() Limits {
	return Limits{
		Each: map[string]Limit{
			"iam:*": {Burst: 10, PerSecond: 5}, "iam:Get*": {Burst: 40, PerSecond: 20}, "iam:List*": {Burst: 40, PerSecond: 20},
			"eks:*": {Burst: 10, PerSecond: 5}, "eks:Describe*": {Burst: 20, PerSecond: 10}, "eks:List*": {Burst: 20, PerSecond: 10},
		},
		Shared: map[string]Limit{"sts:*": {Burst: 600, PerSecond: 600}},
	}
}

type bucket struct {
	tokens float64
	filled time.Time
}

// take takes a token, if there is one.
func (b *bucket) take(l Limit, now time.Time) bool {
	if passed := now.Sub(b.filled); passed > 0 {
		b.tokens, b.filled = min(float64(l.Burst), b.tokens+passed.Seconds()*l.PerSecond), now
	}
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// throttled returns the error for a call beyond its limit, or nil. The caller holds the lock.
func throttled(r *request) error {
	operation := r.op.action()
	if r.op.open {
		return nil // there is no account for it
	}
	where := r.who.account.ID
	if r.service != "iam" {
		where += " " + r.region
	}
	for _, limits := range []struct {
		of     map[string]Limit
		shared bool
	}{{r.limits.Each, false}, {r.limits.Shared, true}} {
		pattern := ""
		for p := range limits.of {
			if iampolicy.Like(p, operation) && len(p) > len(pattern) {
				pattern = p
			}
		}
		if pattern == "" {
			continue
		}
		name := where + " " + operation
		if limits.shared {
			name = where + " " + pattern
		}
		limit := limits.of[pattern]
		b := r.buckets[name]
		if b == nil {
			b = &bucket{tokens: float64(limit.Burst), filled: r.now()}
			r.buckets[name] = b
		}
		if !b.take(limit, r.now()) {
			return Throttled
		}
	}
	return nil
}
