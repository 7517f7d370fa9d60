// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

const (
	// Memory has settled when no process has released more than settleShare of it within settleStep, or after settleLongest.
	settleStep    = 10 * time.Second
	settleShare   = 0.01
	settleLongest = 2 * time.Minute
)

// Memory is the memory of the processes by name, in KiB.
type Memory map[string]Usage

// Usage is the memory of a process in KiB.
type Usage struct {
	// RSS is the resident memory. Anon is its part that is not backed by a file: an etcd maps its database.
	RSS, Anon int
	// Heap is the live Go heap of API servers.
	Heap int
}

// UsageEach is usage divided by a number of objects.
type UsageEach struct {
	RSS  float64 `json:"rss"`
	Anon float64 `json:"anonymous"`
	Heap float64 `json:"liveHeap,omitempty"`
}

// Each returns the usage since before for each of n objects, rounded to a number of digits.
func (u Usage) Each(before Usage, n, digits int) UsageEach {
	each := func(after, before int) float64 { return Round(float64(after-before)/float64(n), digits) }
	return UsageEach{each(u.RSS, before.RSS), each(u.Anon, before.Anon), each(u.Heap, before.Heap)}
}

// SettledMemory collects garbage in the API servers and waits until memory has settled.
func (e *Env) SettledMemory(ctx context.Context, name string) (Memory, error) {
	if e.Options.ProfileDir != "" {
		if err := e.saveProfile(ctx, e.Hub.HubAPIServerConfig(0), "heap-"+name, "/debug/pprof/heap?gc=1"); err != nil {
			return nil, err
		}
	}
	return e.SettledWithin(ctx, settleLongest)
}

// SettledWithin waits until memory has settled, up to a time limit.
func (e *Env) SettledWithin(ctx context.Context, longest time.Duration) (Memory, error) {
	e.Steps.Step("Letting the memory of the servers settle")
	begun := time.Now()
	last := Memory{}
	for {
		now, err := e.ReadMemory(ctx)
		if err != nil {
			return nil, err
		}
		atRest := len(last) > 0
		for name, u := range now {
			if float64(last[name].RSS-u.RSS) > settleShare*float64(u.RSS) {
				atRest = false
			}
		}
		if atRest || time.Since(begun) > longest {
			return now, nil
		}
		last = now
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(settleStep):
		}
		e.Steps.At(int(time.Since(begun).Seconds()), int(longest.Seconds()))
	}
}

// ReadMemory collects garbage and reads the memory of the processes.
func (e *Env) ReadMemory(ctx context.Context) (Memory, error) {
	heaps := map[string]int{}
	for name, config := range map[string]*rest.Config{
		"kube-apiserver": e.Hub.AdminConfig(), "hub-apiserver": e.Hub.HubAPIServerConfig(0),
	} {
		heap, err := liveHeap(ctx, config)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		heaps[name] = heap
	}
	result := Memory{}
	for name, pid := range e.Hub.PIDs() {
		status, err := procStatus(pid)
		if err != nil {
			return nil, err
		}
		result[name] = Usage{RSS: field(status, "VmRSS:"), Anon: field(status, "RssAnon:"), Heap: heaps[name]}
	}
	return result, nil
}

// liveHeap makes a server collect its garbage twice, the second time for what finalizers have freed, and returns the live heap, in KiB.
func liveHeap(ctx context.Context, config *rest.Config) (int, error) {
	admin, err := NewClient(config)
	if err != nil {
		return 0, err
	}
	var answer bytes.Buffer
	for range 2 {
		if err := admin.Get(ctx, "/debug/pprof/heap?gc=1&debug=1", &answer); err != nil {
			return 0, err
		}
	}
	lines := bufio.NewScanner(&answer)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), "# HeapAlloc = "); ok {
			bytes, err := strconv.Atoi(value)
			return bytes / 1024, err
		}
	}
	return 0, fmt.Errorf("the heap's profile does not tell its size: %w", lines.Err())
}

// RSS returns the resident memory of a process in KiB.
func RSS(pid int) (int, error) {
	status, err := procStatus(pid)
	if err != nil {
		return 0, err
	}
	return field(status, "VmRSS:"), nil
}

func procStatus(pid int) ([]byte, error) { return os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) }

// field returns a value in KiB of /proc/<pid>/status.
func field(status []byte, name string) int {
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, name); ok {
			kib, _ := strconv.Atoi(strings.Fields(value)[0])
			return kib
		}
	}
	return 0
}
