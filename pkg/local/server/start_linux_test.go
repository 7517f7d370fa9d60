// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/clusterhub/clusterhub/test/await"
)

// TestStart_TimersAreCoalesced: a process has the timer slack, whether it is tied or not.
func TestStart_TimersAreCoalesced(t *testing.T) {
	slack := func(pid int) string {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/timerslack_ns", pid))
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(data))
	}
	for _, tied := range []bool{true, false} {
		p := Process{Dir: t.TempDir(), Name: "sleeps", Tied: tied}
		if err := p.Start("/bin/sleep", []string{"100"}); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = p.Kill() }()
		for started := time.Now(); p.PID() == 0 && time.Since(started) < await.Limit; time.Sleep(time.Millisecond) {
		}
		if got, want := slack(p.PID()), fmt.Sprint(timerSlack.Nanoseconds()); got != want {
			t.Errorf("a process that is tied: %t has a timer slack of %s ns, expected %s", tied, got, want)
		}
	}
}
