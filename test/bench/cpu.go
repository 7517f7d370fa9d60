// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cpuTimes are the processor times of the hub's processes, by name. They show the cost of a request even while other programs keep the machine busy.
type cpuTimes map[string]time.Duration

// procControllers is hub-controller-manager in the names of processes.
const procControllers = "hub-controller-manager"

// settleCPU is the largest processor time of hub-controller-manager in a settleTick at rest.
const (
	settleTick = 500 * time.Millisecond
	settleCPU  = 25 * time.Millisecond
)

// pids returns the process IDs of all measured processes, by name.
func (e *env) pids() map[string]int {
	pids := e.hub.PIDs()
	if e.others != nil {
		maps.Copy(pids, e.others())
	}
	return pids
}

// cpuNow reads the times. It returns an empty map on systems without /proc.
func (e *env) cpuNow() cpuTimes {
	times := cpuTimes{}
	for name, pid := range e.pids() {
		// /proc/<pid>/stat counts in hundredths of a second, this in nanoseconds, by thread.
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		for _, task := range tasks {
			data, err := os.ReadFile(task)
			if err != nil {
				continue
			}
			used, _, _ := strings.Cut(string(data), " ")
			ns, _ := strconv.ParseInt(used, 10, 64)
			times[name] += time.Duration(ns)
		}
	}
	return times
}

func (t cpuTimes) since(before cpuTimes) cpuTimes {
	used := cpuTimes{}
	for name, v := range t {
		used[name] = max(0, v-before[name])
	}
	return used
}

func (t *cpuTimes) add(other cpuTimes) {
	if *t == nil {
		*t = cpuTimes{}
	}
	for name, v := range other {
		(*t)[name] += v
	}
}

// per returns the time that each process used per one of n requests, in milliseconds.
func (t cpuTimes) per(n int) map[string]float64 {
	result := map[string]float64{}
	for name, v := range t {
		if each := round(milliseconds(v)/float64(n), 3); each >= 0.01 {
			result[name] = each
		}
	}
	return result
}

func (t cpuTimes) total() time.Duration {
	var total time.Duration
	for _, v := range t {
		total += v
	}
	return total
}

// over returns the time per second.
func (t cpuTimes) over(took time.Duration) cpuTimes {
	rate := cpuTimes{}
	for name, used := range t {
		rate[name] = time.Duration(float64(used) / took.Seconds())
	}
	return rate
}

// less subtracts the time that is used at rest.
func (t cpuTimes) less(idle cpuTimes, took time.Duration) cpuTimes {
	left := cpuTimes{}
	for name, used := range t {
		left[name] = max(0, used-time.Duration(float64(idle[name])*took.Seconds()))
	}
	return left
}

// cores returns the processor time per time.
func (t cpuTimes) cores(took time.Duration) map[string]float64 {
	cores := map[string]float64{}
	for name, used := range t {
		cores[name] = round(used.Seconds()/took.Seconds(), 3)
	}
	return cores
}

// awaitIdle waits until hub-controller-manager is idle: in a number of consecutive ticks it uses no processor time and events does not change.
func (e *env) awaitIdle(ctx context.Context, ticks int, events func() int) error {
	for idle := 0; idle < ticks; idle++ {
		cpu, before := e.cpuNow()[procControllers], events()
		if err := sleep(ctx, settleTick); err != nil {
			return fmt.Errorf("hub-controller-manager does not come to rest: %w", err)
		}
		if e.cpuNow()[procControllers]-cpu > settleCPU || events() != before {
			idle = -1
		}
	}
	return nil
}

// ownCPU returns the processor time of this process.
func ownCPU() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
