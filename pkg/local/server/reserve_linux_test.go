// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"
)

// theirs is the environment variable with the name of reservations for another process, which is this test run once more.
const theirs = "CLUSTERHUB_TEST_RESERVATIONS"

// TestReserve_PortsAreExclusive: a server may listen on it only seconds later.
func TestReserve_PortsAreExclusive(t *testing.T) {
	const port = 12345
	if name := os.Getenv(theirs); name != "" {
		if r := newReservations(name); !r.reserve(port+1) || r.reserve(port) {
			t.Fatal("this process has the port, or no other one")
		}
		return
	}
	r := newReservations(fmt.Sprintf("@clusterhub-test-port-%d", os.Getpid()))
	if !r.reserve(port) || r.reserve(port) {
		t.Error("a port is not reserved once")
	}
	another := func() error {
		cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), theirs+"="+r.name)
		return cmd.Run()
	}
	if err := another(); err != nil {
		t.Errorf("another process has the port, or none: %v", err)
	}
	began := r.now()
	r.now = func() time.Time { return began.Add(reservedFor + time.Minute) }
	r.reserve(port + 3) // removes expired reservations
	if err := another(); err == nil {
		t.Error("another process does not get the port when the time is over")
	}
}
