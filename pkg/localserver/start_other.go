// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package localserver

import (
	"os/exec"
	"syscall"
)

// start starts a process in a session of its own.
func start(cmd *exec.Cmd, _ bool) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd.Start()
}
