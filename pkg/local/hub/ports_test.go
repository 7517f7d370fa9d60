// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"maps"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	localserver "github.com/clusterhub/clusterhub/pkg/local/server"
)

// TestChoose_WaitsForPortOfExitingProcess: a process that was killed may hold its port for a moment.
func TestChoose_WaitsForPortOfExitingProcess(t *testing.T) {
	held, port, err := localserver.Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	file := filepath.Join(t.TempDir(), "ports.json")
	nothing := func(string) bool { return false }
	names := counts(1, 1, 1, 0).portNames()

	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := (ports{procFront: port}).choose(short, file, names, nothing); err == nil || !strings.Contains(err.Error(), "is in use by another process") {
		t.Errorf("a port that stays taken: %v", err)
	}

	time.AfterFunc(200*time.Millisecond, func() { _ = held.Close() })
	chosen := ports{procFront: port}
	if err := chosen.choose(t.Context(), file, names, nothing); err != nil {
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

func TestChoose_FollowsTheTopology(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ports.json")
	large, small := counts(2, 2, 3, 0).portNames(), counts(1, 1, 3, 0).portNames()
	nothing := func(string) bool { return false }
	p := ports{}
	for _, names := range [][]string{large, small, large} {
		before := maps.Clone(p)
		if err := p.choose(t.Context(), file, names, nothing); err != nil {
			t.Fatal(err)
		}
		written, err := readPorts(file)
		if err != nil || !maps.Equal(written, p) || len(p) != len(names) {
			t.Fatalf("%d ports, %d of them written down, for %d names: %v", len(p), len(written), len(names), err)
		}
		for name, port := range before {
			if p[name] != 0 && p[name] != port {
				t.Errorf("%s had port %d and has %d", name, port, p[name])
			}
		}
	}

	// Members of an etcd cannot get other ports: the error must not suggest to delete the file.
	l, err := net.Listen("tcp", localserver.Address(p["etcd-2/peer"]))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err = p.choose(short, file, large, nothing)
	if err == nil || !strings.Contains(err.Error(), "etcd-2/peer is in use by another process: stop that process;") || strings.Contains(err.Error(), "delete") {
		t.Errorf("the port of a member is taken: %v", err)
	}
}
