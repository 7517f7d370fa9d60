// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package localserver

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"github.com/clusterhub/clusterhub/pkg/localserver/rootdir"
)

// spawner starts processes that die with this one. The system ties them to the thread that starts them, so that has to
// be one that lives as long as this process.
var spawner = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// start starts the process. One that is tied is killed when this process ends, however it ends.
func (p Process) start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: !p.SharesSession, Setpgid: p.SharesSession}
	if p.OwnMounts {
		rootdir.Own(cmd.SysProcAttr, rootdir.User, rootdir.User)
	}
	if !p.Tied {
		return cmd.Start()
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	result := make(chan error)
	spawner() <- func() { result <- cmd.Start() }
	return <-result
}
