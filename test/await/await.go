// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package await polls conditions in tests.
package await

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// pauses are the intervals between polls: 50 ms at first, then about a tenth of the time that has passed, and at most a second. Each poll takes
// processor time from the tested programs, especially if it runs kubectl.
var pauses = wait.Backoff{Duration: 50 * time.Millisecond, Factor: 1.1, Steps: 100, Cap: time.Second}

// Limit is the default time limit of tests for what a working program does. A test that passes does not reach it, however busy the machine is.
const Limit = 3 * time.Minute

// Until polls a condition, immediately and after each pause, until it holds, it returns an error, or the limit has passed. It may miss a condition
// that holds only briefly.
func Until(ctx context.Context, limit time.Duration, holds wait.ConditionWithContextFunc) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return pauses.DelayFunc().Until(ctx, true, true, holds)
}
