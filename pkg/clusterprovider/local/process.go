// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import "github.com/clusterhub/clusterhub/pkg/localserver"

// supervise starts the process unless it runs with this command line already. When one that was started has ended before it
// was ready, this is said instead, once.
func (p *Provider) supervise(proc localserver.Process, bin string, args []string) error {
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
	} else if p.attempt(proc, false) {
		return proc.Ended()
	}
	if err := proc.Start(bin, args); err != nil {
		return err
	}
	p.attempt(proc, true)
	return nil
}

// attempt notes whether a process has been started and not been seen ready since, and returns what was noted before.
func (p *Provider) attempt(proc localserver.Process, pending bool) bool {
	p.attemptsMu.Lock()
	defer p.attemptsMu.Unlock()
	before := p.attempts[proc]
	delete(p.attempts, proc)
	if pending {
		p.attempts[proc] = true
	}
	return before
}
