// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"os/exec"
	"syscall"
)

// ignoreInterrupt prevents the Ctrl-C that ends this process from ending the command.
func ignoreInterrupt(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// ignoreTerminalInput does nothing: reads fail in a process that may not read.
func ignoreTerminalInput() {}
