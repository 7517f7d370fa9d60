// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package server has what Kubernetes servers need as processes on this machine, for development and tests: certificates, ports, and starts and
// exits that can be explained.
package server

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"unicode"
)

// Ports are taken from these, which no system assigns to clients by itself: between the choice of a port and its use, a connection could take it.
const (
	FirstPort = 10_000
	LastPort  = 32_767
)

// Address returns the address of a port on the only interface that these servers listen on.
func Address(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// Listen listens on a random free port, since others may be choosing at the same time. No other process of this user chooses it for some minutes, so
// that a server can have it once it is closed.
func Listen() (l net.Listener, port int, err error) {
	for range 1000 {
		port = FirstPort + rand.IntN(LastPort-FirstPort+1)
		l, err = net.Listen("tcp", Address(port))
		if err != nil {
			continue
		}
		if chosen.reserve(port) {
			return l, port, nil
		}
		err = errors.Join(errors.New("all others are reserved"), l.Close())
	}
	return nil, 0, fmt.Errorf("no port from %d to %d is free on 127.0.0.1: %w", FirstPort, LastPort, err)
}

// Complaint returns the line of a log that most likely explains why a process has exited: the last error, or else the last line. It has no characters
// that a terminal would interpret as commands.
func Complaint(log string) string {
	data, err := os.ReadFile(log)
	if err != nil {
		return err.Error()
	}
	last, complaint := "the log is empty", ""
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" {
			continue
		}
		last = line
		if strings.HasPrefix(line, "Error:") || strings.HasPrefix(line, "panic:") || strings.Contains(line, `"level":"fatal"`) ||
			(line[0] == 'E' || line[0] == 'F') && strings.Contains(line, "] ") {
			complaint = line
		}
	}
	if complaint != "" {
		last = complaint
	}
	if len(last) > 500 {
		last = strings.ToValidUTF8(last[:500], "") + "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, last)
}

// WriteFile replaces a file atomically, so that no reader sees a partial file. Only its owner may read it.
func WriteFile(file string, data []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+"-")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name())
	_, err = temporary.Write(data)
	if err = errors.Join(err, temporary.Sync(), temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), file)
}
