// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !windows

package cli

import (
	"os/exec"
	"os/signal"
	"syscall"
)

// apart has a process not end by the Ctrl-C that ends this one.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// leaveKeyboard has a process in the background go on when it cannot read from the terminal.
func leaveKeyboard() { signal.Ignore(syscall.SIGTTIN) }
