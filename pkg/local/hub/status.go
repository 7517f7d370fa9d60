// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	localserver "github.com/clusterhub/clusterhub/pkg/local/server"
)

// ProcessStatus is the status of a process that runs or should run.
type ProcessStatus struct {
	// Name is the name of the process, with the name of its cluster as a prefix if it belongs to one beside the hub.
	Name string
	// PID is 0 if the process does not run.
	PID int
	// Says is why the process does not run, or was restarted.
	Says string
}

// Status returns the status of all processes of the hub and of the clusters beside it, sorted by name.
func (h *Instance) Status(now time.Time) ([]ProcessStatus, error) {
	clusters, err := h.Clusters()
	if err != nil {
		return nil, err
	}
	pids := h.PIDs()
	for _, c := range clusters {
		for name, pid := range c.PIDs() {
			pids[filepath.Base(c.Dir())+"/"+name] = pid
		}
	}
	says := map[string]string{}
	for _, p := range supervised(h.config.Dir) {
		pid := pids[p.label]
		pids[p.label] = pid
		says[p.label] = p.statusText(pid != 0, now)
	}
	if len(says) > 0 && pids[procSupervisor] == 0 {
		pids[procSupervisor] = 0
		says[procSupervisor] = "does not run, so processes that exit are not restarted: " + localserver.Complaint(h.process(procSupervisor).Log())
	}
	var all []ProcessStatus
	for _, name := range slices.Sorted(maps.Keys(pids)) {
		all = append(all, ProcessStatus{Name: name, PID: pids[name], Says: says[name]})
	}
	return all, nil
}

// statusText returns the text for a process that should run.
func (p supervisedProcess) statusText(runs bool, now time.Time) string {
	e := p.end()
	ago := now.Sub(e.At).Round(time.Second)
	switch {
	case runs && e.Times == 0:
		return ""
	case runs:
		return fmt.Sprintf("restarted %s, last %s ago: %s", times(e.Times), ago, e.why())
	case e.Times == 0:
		return "does not run; last log line: " + localserver.Complaint(p.process.Log())
	case e.Next.After(now):
		return fmt.Sprintf("exited %s, last %s ago, restarts in %s: %s", times(e.Times), ago, e.Next.Sub(now).Round(time.Second), e.why())
	}
	return fmt.Sprintf("exited %s, last %s ago: %s", times(e.Times), ago, e.why())
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
