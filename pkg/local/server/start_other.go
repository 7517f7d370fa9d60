// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package server

import (
	"errors"
	"os/exec"
	"syscall"
)

// start starts the process.
func (p Process) start(cmd *exec.Cmd) error {
	if p.OwnMounts {
		return errors.New("mount namespaces are supported on Linux only")
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: !p.SharesSession, Setpgid: p.SharesSession}
	return cmd.Start()
}
