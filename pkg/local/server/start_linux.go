// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/clusterhub/clusterhub/pkg/local/server/rootdir"
)

// timerSlack is the maximum delay of the timers of a process, so that several expire at once. Idle Kubernetes servers have some hundred timers per
// second, most of them of work queues: with a slack of 20 ms, 60 % less processor time is spent on waking up for them.
const timerSlack = 20 * time.Millisecond

// prSetTimerSlack is PR_SET_TIMERSLACK of linux/prctl.h.
const prSetTimerSlack = 29

// spawner starts processes, which inherit the timer slack of its thread. Those that must die with this process are tied by the system to the thread
// that starts them, so that thread must live as long as this process.
var spawner = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, prSetTimerSlack, uintptr(timerSlack.Nanoseconds()), 0) // an optimization, so errors are ignored
		for f := range work {
			f()
		}
	}()
	return work
})

// start starts the process. A tied one is killed when this process ends, however it ends.
func (p Process) start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: !p.SharesSession, Setpgid: p.SharesSession}
	if p.OwnMounts {
		rootdir.Own(cmd.SysProcAttr, rootdir.User, rootdir.User)
	}
	if p.Tied {
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
	result := make(chan error)
	spawner() <- func() { result <- cmd.Start() }
	return <-result
}
