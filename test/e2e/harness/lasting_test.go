// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"slices"
	"testing"
)

// TestLasting_FatalRunsCleanups verifies that the logs of servers are printed, and the servers stopped, before the program exits.
func TestLasting_FatalRunsCleanups(t *testing.T) {
	l := newLasting()
	var ran []string
	for _, name := range []string{"server", "logs"} {
		l.Cleanup(func() {
			if l.Failed() {
				ran = append(ran, name)
			}
		})
	}
	defer func() {
		if got := recover(); got != "no hub" || !slices.Equal(ran, []string{"logs", "server"}) {
			t.Errorf("Fatal ended with %v after the cleanups %q, expected a panic after logs and server", got, ran)
		}
	}()
	l.Fatal("no hub")
}
