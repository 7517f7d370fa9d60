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

// Timeout is the limit of all waits that succeed in tests that pass.
const Timeout = await.Limit

// Eventually waits until a condition holds. It prints the last error if the condition never holds.
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

// Must returns the value of a call that must succeed: Must(f())(t).
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

// Unique returns a name that no other test has. The name is a DNS label.
func Unique(prefix string) string { return fmt.Sprintf("%s-%d", prefix, sequence.Add(1)) }

// ErrorOf returns the error of a call whose other result does not matter.
func ErrorOf[T any](_ T, err error) error { return err }

// Holds returns the results of a condition for Eventually. The shown value says why the condition does not hold.
func Holds(ok bool, shown any) (bool, error) {
	if ok {
		return true, nil
	}
	return false, fmt.Errorf("%v", shown)
}
