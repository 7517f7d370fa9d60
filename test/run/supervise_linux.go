// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// superviseArg is the first argument of run when it is the supervisor of one job.
const superviseArg = "supervise"

// computeNice is the priority, as of nice(1), of jobs that compute: they leave the processor to those that wait for servers.
const computeNice = 5

// prSetChildSubreaper is PR_SET_CHILD_SUBREAPER of linux/prctl.h.
const prSetChildSubreaper = 36

// sampleEvery is how often the processes of a job are looked at. It is shorter than any life of a kube-apiserver.
const sampleEvery = 500 * time.Millisecond

// supervise runs a command, and writes to file descriptor 3 what it and all its descendants have cost. Those that outlive the command are
// killed. It returns the exit code of the command.
func supervise(kind, command string) int {
	// Orphans become children of this process, which can then end them, and knows the processor time of each.
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

// lowerPriority lowers the priority of this session. Where the kernel groups processes by session, nice has no effect across sessions:
// there the group of the session gets the priority.
func lowerPriority() {
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, computeNice)
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

// process is one of the system's, as /proc/PID/stat has it.
type process struct {
	name   string
	parent int
	// began is when it was started, in clock ticks since the machine's start: with the id it is unique.
	began string
}

// processes returns those of the system, by id.
func processes() map[int]process {
	all := map[int]process{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		// "PID (NAME) STATE PPID …": the name may have spaces and parentheses.
		open, end := strings.IndexByte(string(data), '('), strings.LastIndexByte(string(data), ')')
		fields := strings.Fields(string(data[end+1:]))
		if open < 0 || len(fields) < 20 || fields[0] == "Z" {
			continue
		}
		parent, _ := strconv.Atoi(fields[1])
		all[pid] = process{name: string(data[open+1 : end]), parent: parent, began: fields[19]}
	}
	return all
}

// descendants returns the processes below this one.
func descendants() map[int]process {
	all, self := processes(), os.Getpid()
	below := map[int]process{}
	for pid, p := range all {
		for ancestor, depth := p.parent, 0; ancestor > 1 && depth < 100; ancestor, depth = all[ancestor].parent, depth+1 {
			if ancestor == self {
				below[pid] = p
				break
			}
		}
	}
	return below
}

// killDescendants kills what runs below this process, and what that starts as it is killed. It returns their names.
func killDescendants() (names []string) {
	for range 10 {
		below := descendants()
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

// countStarts counts the kube-apiservers that are started below this process, until the function is called that it returns.
func countStarts() (stop func() int) {
	seen, ended := map[string]bool{}, make(chan struct{})
	var counting sync.WaitGroup
	counting.Go(func() {
		for {
			for pid, p := range descendants() {
				if p.name == "kube-apiserver" {
					seen[fmt.Sprint(pid, p.began)] = true
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
