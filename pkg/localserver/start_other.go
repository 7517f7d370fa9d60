// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package localserver

import (
	"errors"
	"os/exec"
	"syscall"
)

// start starts a process in a session of its own.
func start(cmd *exec.Cmd, _, ownMounts bool) error {
	if ownMounts {
		return errors.New("a process can have mounts of its own on Linux only")
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd.Start()
}
