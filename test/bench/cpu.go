// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// cpuTimes are the processor times of the hub's processes, by name. They show the cost of a request even while other programs keep the machine busy.
type cpuTimes map[string]time.Duration

// pids returns the process IDs of all measured processes, by name.
func (b *bench) pids() map[string]int {
	pids := b.hub.PIDs()
	if b.others != nil {
		maps.Copy(pids, b.others())
	}
	return pids
}

// cpuNow reads the times. It returns an empty map on systems without /proc.
func (b *bench) cpuNow() cpuTimes {
	times := cpuTimes{}
	for name, pid := range b.pids() {
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
