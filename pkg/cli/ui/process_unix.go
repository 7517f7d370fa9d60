// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !windows

package ui

import (
	"os/exec"
	"os/signal"
	"syscall"
)

// ignoreInterrupt prevents the Ctrl-C that ends this process from ending the command.
func ignoreInterrupt(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// ignoreTerminalInput prevents a background process from being stopped when it reads from the terminal.
func ignoreTerminalInput() { signal.Ignore(syscall.SIGTTIN) }
