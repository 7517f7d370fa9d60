// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

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

// CPUTimes are the processor times of the hub's processes, by name. They show the cost of a request even while other programs keep the machine busy.
type CPUTimes map[string]time.Duration

// ProcControllers is hub-controller-manager in the names of processes.
const ProcControllers = "hub-controller-manager"

// SettleTick is the interval in which the processor time of hub-controller-manager is read. settleCPU is the largest that it uses at rest in one.
const (
	SettleTick = 500 * time.Millisecond
	settleCPU  = 25 * time.Millisecond
)

// PIDs returns the process IDs of all measured processes, by name.
func (e *Env) PIDs() map[string]int {
	pids := e.Hub.PIDs()
	if e.Others != nil {
		maps.Copy(pids, e.Others())
	}
	return pids
}

// CPUNow reads the times. It returns an empty map on systems without /proc.
func (e *Env) CPUNow() CPUTimes {
	times := CPUTimes{}
	for name, pid := range e.PIDs() {
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

// Since returns the times that were used since before.
func (t CPUTimes) Since(before CPUTimes) CPUTimes {
	used := CPUTimes{}
	for name, v := range t {
		used[name] = max(0, v-before[name])
	}
	return used
}

// Add adds other times.
func (t *CPUTimes) Add(other CPUTimes) {
	if *t == nil {
		*t = CPUTimes{}
	}
	for name, v := range other {
		(*t)[name] += v
	}
}

// Per returns the time that each process used per one of n requests, in milliseconds.
func (t CPUTimes) Per(n int) map[string]float64 {
	result := map[string]float64{}
	for name, v := range t {
		if each := Round(Milliseconds(v)/float64(n), 3); each >= 0.01 {
			result[name] = each
		}
	}
	return result
}

func (t CPUTimes) total() time.Duration {
	var total time.Duration
	for _, v := range t {
		total += v
	}
	return total
}

// PerSecond returns the time per second.
func (t CPUTimes) PerSecond(took time.Duration) CPUTimes {
	rate := CPUTimes{}
	for name, used := range t {
		rate[name] = time.Duration(float64(used) / took.Seconds())
	}
	return rate
}

// Minus subtracts the time that is used at rest.
func (t CPUTimes) Minus(idle CPUTimes, took time.Duration) CPUTimes {
	left := CPUTimes{}
	for name, used := range t {
		left[name] = max(0, used-time.Duration(float64(idle[name])*took.Seconds()))
	}
	return left
}

// Cores returns the processor time per time.
func (t CPUTimes) Cores(took time.Duration) map[string]float64 {
	cores := map[string]float64{}
	for name, used := range t {
		cores[name] = Round(used.Seconds()/took.Seconds(), 3)
	}
	return cores
}

// AwaitIdle waits until hub-controller-manager is idle: in a number of consecutive ticks it uses no processor time and events does not change.
func (e *Env) AwaitIdle(ctx context.Context, ticks int, events func() int) error {
	for idle := 0; idle < ticks; idle++ {
		cpu, before := e.CPUNow()[ProcControllers], events()
		if err := Sleep(ctx, SettleTick); err != nil {
			return fmt.Errorf("hub-controller-manager does not come to rest: %w", err)
		}
		if e.CPUNow()[ProcControllers]-cpu > settleCPU || events() != before {
			idle = -1
		}
	}
	return nil
}

// OwnCPU returns the processor time of this process.
func OwnCPU() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
