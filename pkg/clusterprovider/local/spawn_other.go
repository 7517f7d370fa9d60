// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package local

import (
	"os/exec"
	"syscall"
)

// spawn starts a process in a session of its own.
func spawn(cmd *exec.Cmd, _ bool) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd.Start()
}
