// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package localserver

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/clusterhub/clusterhub/pkg/localserver/rootdir"
)

// timerSlack is how much later than asked for the timers of a process may end, so that several end at once. Servers of Kubernetes at rest have some
// hundred timers a second, most of them of work queues: with a slack of 20 ms, 60 % less processor time goes to waking up for them.
const timerSlack = 20 * time.Millisecond

// prSetTimerSlack is PR_SET_TIMERSLACK of linux/prctl.h.
const prSetTimerSlack = 29

// spawner starts processes, which inherit the timer slack of its thread. Those that are to die with this process are tied by the system to the thread
// that starts them, so that has to be one that lives as long as this process.
var spawner = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, prSetTimerSlack, uintptr(timerSlack.Nanoseconds()), 0) // without it, all works as well
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
	if p.Tied {
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
	result := make(chan error)
	spawner() <- func() { result <- cmd.Start() }
	return <-result
}
