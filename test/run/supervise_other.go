// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
)

// superviseArg is the first argument of run when it is the supervisor of one job.
const superviseArg = "supervise"

// supervise runs a command, and writes its cost to file descriptor 3, as far as this system provides it: orphans are not counted.
func supervise(_, command string) int {
	cmd := exec.Command("/bin/bash", "-c", command)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	err := cmd.Run()
	if cmd.ProcessState == nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_ = json.NewEncoder(os.NewFile(3, "cost")).Encode(cost{CPU: (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()})
	return cmd.ProcessState.ExitCode()
}

// newIdleMeter returns a function that always reports all cores as idle, because the load is not measured on this system.
func newIdleMeter() func() float64 { return func() float64 { return float64(runtime.NumCPU()) } }
