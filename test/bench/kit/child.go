// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Child is a process that is not part of a hub.
type Child struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// StartProcess starts the process. Its output is appended to a file.
func (c *Child) StartProcess(cmd *exec.Cmd, logFile string) error {
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	c.cmd, c.ended = cmd, make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(c.ended)
	}()
	return nil
}

// Exited reports whether the process has ended without having been stopped.
func (c *Child) Exited() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// Stop stops the process like a cluster would.
func (c *Child) Stop() {
	if c.cmd == nil {
		return
	}
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-c.ended:
	case <-time.After(30 * time.Second):
		_ = c.cmd.Process.Kill()
		<-c.ended
	}
	c.cmd = nil
}

// RSS returns the resident memory of the process in KiB, or 0 if it does not run.
func (c *Child) RSS() int {
	kib, err := RSS(c.cmd.Process.Pid)
	if err != nil {
		return 0
	}
	return kib
}

// PID returns the ID of the process, or 0 if it does not run.
func (c *Child) PID() int {
	if c.cmd == nil {
		return 0
	}
	return c.cmd.Process.Pid
}
