// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package localhub

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/clusterhub/clusterhub/pkg/localserver"
)

// TestChoose_WaitsForAPortOfAProcessThatDies: a process that was killed may hold its port for a moment.
func TestChoose_WaitsForAPortOfAProcessThatDies(t *testing.T) {
	held, port, err := localserver.Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	file := filepath.Join(t.TempDir(), "ports.json")
	nothing := func(string) bool { return false }

	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := (ports{procFront: port}).choose(short, file, 1, nothing); err == nil || !strings.Contains(err.Error(), "is taken by another process") {
		t.Errorf("a port that stays taken: %v", err)
	}

	time.AfterFunc(200*time.Millisecond, func() { _ = held.Close() })
	chosen := ports{procFront: port}
	if err := chosen.choose(t.Context(), file, 1, nothing); err != nil {
		t.Fatal(err)
	}
	if chosen[procFront] != port {
		t.Errorf("port %d became %d", port, chosen[procFront])
	}
	// The ports are free again for the processes.
	l, err := net.Listen("tcp", localserver.Address(port))
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
}
