// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import localserver "github.com/clusterhub/clusterhub/pkg/local/server"

// supervise starts the process unless it runs with this command line already. If a started process has exited before it was ready, it returns that
// error once instead.
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

// attempt records whether a process has been started and has not been ready since, and returns the previous value.
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
