// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/clusterhub/clusterhub/test/await"
)

// Timeout is the limit of all waits that end with success in tests that pass.
const Timeout = await.Limit

// Eventually waits until something holds. What its error says is shown if it never does.
func Eventually(t *testing.T, what string, ok func(context.Context) (bool, error)) {
	t.Helper()
	var last error
	err := await.Until(t.Context(), Timeout, func(ctx context.Context) (bool, error) {
		done, err := ok(ctx)
		last = err
		return done && err == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: not after %s: %v", what, Timeout, last)
	}
}

// Must is the value of a call that has to succeed: Must(f())(t).
func Must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

var sequence atomic.Int64

// Unique makes a name that no other test has. It is a DNS label.
func Unique(prefix string) string { return fmt.Sprintf("%s-%d", prefix, sequence.Add(1)) }

// ErrorOf is for calls whose outcome does not matter.
func ErrorOf[T any](_ T, err error) error { return err }

// Holds is for Eventually; what is shown says why it does not hold.
func Holds(ok bool, shown any) (bool, error) {
	if ok {
		return true, nil
	}
	return false, fmt.Errorf("%v", shown)
}
