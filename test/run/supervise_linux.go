// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// superviseArg is the first argument of run when it is the supervisor of one job.
const superviseArg = "supervise"

// computeNice is the priority, in terms of nice(1), of jobs that compute: they leave the processor to those that wait for servers.
const computeNice = 5

// prSetChildSubreaper is PR_SET_CHILD_SUBREAPER of linux/prctl.h.
const prSetChildSubreaper = 36

// sampleEvery is the interval at which the processes of a job are read. It is shorter than the lifetime of any kube-apiserver.
const sampleEvery = 500 * time.Millisecond

// supervise runs a command, and writes the cost of the command and all its descendants to file descriptor 3. It kills those that outlive the command.
// It returns the exit code of the command.
func supervise(kind, command string) int {
	// Orphans become children of this process, which can then kill them, and gets the processor time of each.
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0); errno != 0 {
		fmt.Fprintf(os.Stderr, "descendants cannot be adopted: %v\n", errno)
	}
	_, _ = syscall.Setsid() // Ctrl-C is for the scheduler alone, which then ends its jobs
	if kind == kindCompute {
		lowerPriority()
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	process, err := os.StartProcess("/bin/bash", []string{"bash", "-c", command}, &os.ProcAttr{
		Env: os.Environ(), Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	starts := countStarts()
	go func() {
		<-stop
		killDescendants()
	}()
	code := reap(process.Pid)
	for _, name := range killDescendants() {
		fmt.Fprintf(os.Stderr, "%s was left running, and is killed\n", name)
	}
	for reapOne() {
	}
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_CHILDREN, &usage)
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	_ = json.NewEncoder(os.NewFile(3, "cost")).Encode(cost{CPU: seconds(usage.Utime) + seconds(usage.Stime), Starts: starts()})
	return code
}

// lowerPriority lowers the priority of this session. If the kernel groups processes by session, nice has no effect across sessions, so the group of
// the session gets the priority. All threads get it, because a child inherits that of the thread that starts it.
func lowerPriority() {
	_ = syscall.Setpriority(syscall.PRIO_PGRP, 0, computeNice)
	_ = os.WriteFile("/proc/self/autogroup", []byte(strconv.Itoa(computeNice)), 0)
}

// reap waits for children until the one with the given id has ended, and returns its exit code.
func reap(pid int) int {
	for {
		var status syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return 1
		case ended == pid && status.Signaled():
			return 128 + int(status.Signal())
		case ended == pid:
			return status.ExitStatus()
		}
	}
}

// reapOne waits for a child, and reports whether there was one.
func reapOne() bool {
	_, err := syscall.Wait4(-1, nil, 0, nil)
	return err == nil || err == syscall.EINTR
}

// process is a process of the system, from /proc/PID/stat.
type process struct {
	name   string
	parent int
}

// readProcess reads a process, and reports whether it runs.
func readProcess(pid int) (process, bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, false
	}
	// "PID (NAME) STATE PPID …": the name may have spaces and parentheses.
	open, end := strings.IndexByte(string(data), '('), strings.LastIndexByte(string(data), ')')
	fields := strings.Fields(string(data[end+1:]))
	if open < 0 || len(fields) < 2 || fields[0] == "Z" {
		return process{}, false
	}
	parent, _ := strconv.Atoi(fields[1])
	return process{name: string(data[open+1 : end]), parent: parent}, true
}

// family has the processes of the system that a supervisor has read.
type family struct {
	self int
	// looks is the number of times that each running process was read, up to settled.
	looks map[int]int
	// below reports which processes are descendants. They stay descendants: those whose parent ends become children of the supervisor.
	below map[int]bool
}

// settled is the number of times that a process is read: within that time, it executes its final program. Reading each process of the
// system each time took 6 % of a machine with four supervisors.
const settled = 3

// look reads processes, and returns the descendants, by id, that are not settled.
func (f *family) look() map[int]process {
	if f.self == 0 {
		f.self, f.looks, f.below = os.Getpid(), map[int]int{}, map[int]bool{}
	}
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	running, found := map[int]int{}, map[int]process{}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		running[pid] = min(f.looks[pid]+1, settled+1)
		if running[pid] > settled {
			continue
		}
		if p, ok := readProcess(pid); ok && f.isBelow(p, 0) {
			f.below[pid], found[pid] = true, p
		}
	}
	f.looks = running
	maps.DeleteFunc(f.below, func(pid int, _ bool) bool { return running[pid] == 0 })
	return found
}

// isBelow reports whether a process is a descendant. Its parent may not have been read yet.
func (f *family) isBelow(p process, depth int) bool {
	if p.parent == f.self || f.below[p.parent] {
		return true
	}
	if p.parent <= 1 || f.looks[p.parent] > 0 || depth > 100 {
		return false
	}
	parent, ok := readProcess(p.parent)
	return ok && f.isBelow(parent, depth+1)
}

// killDescendants kills the descendants of this process, including those that start during that. It returns their names.
func killDescendants() (names []string) {
	for range 10 {
		below := new(family).look()
		if len(below) == 0 {
			break
		}
		for pid, p := range below {
			names = append(names, p.name)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		time.Sleep(10 * time.Millisecond) // as they end
	}
	return names
}

// countStarts counts the kube-apiservers that start as descendants of this process, until the returned function is called.
func countStarts() (stop func() int) {
	var processes family
	seen, ended := map[int]bool{}, make(chan struct{}) // process ids are reused much later
	var counting sync.WaitGroup
	counting.Go(func() {
		for {
			for pid, p := range processes.look() {
				if p.name == "kube-apiserver" {
					seen[pid] = true
				}
			}
			select {
			case <-ended:
				return
			case <-time.After(sampleEvery):
			}
		}
	})
	return func() int {
		close(ended)
		counting.Wait()
		return len(seen)
	}
}

// newIdleMeter returns a function that returns the average number of idle cores since its last call. Time at low priority, which jobs that compute
// have, counts as idle.
func newIdleMeter() func() float64 {
	before, since := idleTime(), time.Now()
	return func() float64 {
		now, at := idleTime(), time.Now()
		defer func() { before, since = now, at }()
		return (now - before).Seconds() / at.Sub(since).Seconds()
	}
}

// idleTime returns the time that all cores together were idle or worked at low priority, from /proc/stat. It counts in hundredths of a second.
func idleTime() time.Duration {
	data, _ := os.ReadFile("/proc/stat")
	fields := strings.Fields(string(data)) // cpu USER NICE SYSTEM IDLE IOWAIT …
	var ticks int
	for _, i := range []int{2, 4, 5} {
		if i < len(fields) {
			n, _ := strconv.Atoi(fields[i])
			ticks += n
		}
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
