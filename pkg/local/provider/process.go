// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"sync"

	localserver "github.com/clusterhub/clusterhub/pkg/local/server"
)

// starter starts processes. It is safe for concurrent use.
type starter struct {
	attemptsMu sync.Mutex
	// attempts are the processes that were started and have not been ready since.
	attempts map[localserver.Process]bool
}

// supervise starts the process unless it runs with this command line already. If a started process has exited before it was ready, it returns that
// error once instead.
func (s *starter) supervise(proc localserver.Process, bin string, args []string) error {
	running, err := proc.Running()
	if err != nil {
		return err
	}
	if running && proc.Runs(bin, args) {
		return nil
	}
	if running {
		if err := proc.Stop(); err != nil {
			return err
		}
	} else if s.attempt(proc, false) {
		return proc.Ended()
	}
	if err := proc.Start(bin, args); err != nil {
		return err
	}
	s.attempt(proc, true)
	return nil
}

// attempt records whether a process has been started and has not been ready since, and returns the previous value.
func (s *starter) attempt(proc localserver.Process, pending bool) bool {
	s.attemptsMu.Lock()
	defer s.attemptsMu.Unlock()
	before := s.attempts[proc]
	delete(s.attempts, proc)
	if pending {
		if s.attempts == nil {
			s.attempts = map[localserver.Process]bool{}
		}
		s.attempts[proc] = true
	}
	return before
}
