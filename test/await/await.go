// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package await waits in tests for what others do.
package await

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// pauses are those between looks: 50 ms at first, then about a tenth of the time that has passed, and at most a second. Each look takes
// processor time from what is waited for, above all where it starts kubectl.
var pauses = wait.Backoff{Duration: 50 * time.Millisecond, Factor: 1.1, Steps: 100, Cap: time.Second}

// Limit is for how long tests wait for what a working program does. A test that passes does not reach it, however busy the machine is.
const Limit = 3 * time.Minute

// Until looks whether a condition holds, at once and after each pause, until it does, returns an error, or the limit has passed. What holds for
// a moment alone may be missed.
func Until(ctx context.Context, limit time.Duration, holds wait.ConditionWithContextFunc) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return pauses.DelayFunc().Until(ctx, true, true, holds)
}
