// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os/exec"
	"syscall"
)

// apart has a process not end by the Ctrl-C that ends this one.
func apart(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// leaveKeyboard has nothing to do: a process that cannot read is told so.
func leaveKeyboard() {}
