// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package localhub

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/clusterhub/clusterhub/pkg/localserver"
)

// stopGrace is how long a process may take to end by itself.
const stopGrace = 30 * time.Second

// process is one process of the hub. What is exported is kept in its pid file.
type process struct {
	PID int `json:"pid"`
	// Started tells the process from a later one with the same id; its unit is the system's own.
	Started string `json:"started"`
	// Runs is the fingerprint of its binary and flags.
	Runs string `json:"runs"`

	name, pidFile, log string
	// done is closed when a process that this one started has ended; nil for one that was found running.
	done chan struct{}
	mu   sync.Mutex
	err  error
}

// fingerprint tells a binary with its flags from others. The binary's time would not do: go build sets it also when it
// leaves the binary as it is.
func fingerprint(bin string, args, env []string) (string, error) {
	file, err := os.Open(bin)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := crc32.NewIEEE()
	if _, err := io.Copy(sum, file); err != nil {
		return "", err
	}
	fmt.Fprintf(sum, "%q %q", args, env)
	return fmt.Sprintf("%08x", sum.Sum32()), nil
}

// startProcess starts a process whose output goes to the log.
func startProcess(name, dir, bin string, args, env []string, detach bool) (*process, error) {
	runs, err := fingerprint(bin, args, env)
	if err != nil {
		return nil, err
	}
	log := filepath.Join(dir, "logs", name+".log")
	_ = os.Rename(log, log+".previous")
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd := exec.Command(bin, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := localserver.Start(cmd, !detach); err != nil {
		return nil, fmt.Errorf("%s cannot be started: %w", name, err)
	}
	p := &process{PID: cmd.Process.Pid, Started: startTime(cmd.Process.Pid), Runs: runs, name: name, log: log,
		pidFile: pidFile(dir, name), done: make(chan struct{})}
	go func() {
		err := cmd.Wait()
		p.mu.Lock()
		p.err = err
		p.mu.Unlock()
		close(p.done)
	}()
	data, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	return p, os.WriteFile(p.pidFile, data, 0o600)
}

func pidFile(dir, name string) string { return filepath.Join(dir, "run", name+".pid") }

// findProcess returns the process of a pid file if it still runs.
func findProcess(dir, name string) *process {
	data, err := os.ReadFile(pidFile(dir, name))
	if err != nil {
		return nil
	}
	p := &process{name: name, pidFile: pidFile(dir, name), log: filepath.Join(dir, "logs", name+".log")}
	if json.Unmarshal(data, p) != nil || !p.alive() {
		return nil
	}
	return p
}

func (p *process) alive() bool {
	if p.done != nil {
		select {
		case <-p.done:
			return false
		default:
			return true
		}
	}
	// Without a start time it may be anybody's.
	return p.PID > 0 && p.Started != "" && syscall.Kill(p.PID, 0) == nil && startTime(p.PID) == p.Started
}

// ended returns an error of one line if the process does not run any more.
func (p *process) ended() error {
	if p.alive() {
		return nil
	}
	p.mu.Lock()
	err := p.err
	p.mu.Unlock()
	how := ""
	if err != nil {
		how = " (" + err.Error() + ")"
	}
	return fmt.Errorf("%s has ended%s: %s; its log is %s", p.name, how, localserver.Complaint(p.log), p.log)
}

// stop ends the process, at the latest after stopGrace.
func (p *process) stop() { p.end(syscall.SIGTERM) }

// kill ends the process without letting it know.
func (p *process) kill() { p.end(syscall.SIGKILL) }

func (p *process) end(signal syscall.Signal) {
	if p.alive() {
		_ = syscall.Kill(p.PID, signal)
		deadline := time.Now().Add(stopGrace)
		for p.alive() {
			if time.Now().After(deadline) {
				_ = syscall.Kill(p.PID, syscall.SIGKILL)
				deadline = time.Now().Add(stopGrace)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	_ = os.Remove(p.pidFile)
}

// startTime is when a process was started, as the system counts it; "" when it has ended, or that cannot be told.
func startTime(pid int) string {
	if _, err := os.Stat("/proc/self/stat"); errors.Is(err, os.ErrNotExist) {
		return startTimeByPS(pid)
	}
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	// The name, in parentheses, may have spaces; 22nd is the start time, 3rd (the state) comes right after the name.
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" {
		return ""
	}
	return fields[19]
}

// startTimeByPS is startTime on a system without /proc, such as macOS.
func startTimeByPS(pid int) string {
	cmd := exec.Command("ps", "-o", "stat=", "-o", "lstart=", "-p", strconv.Itoa(pid))
	// The time is compared as text: it must not depend on the terminal that asks.
	cmd.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC")
	out, err := cmd.Output()
	state, started, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if err != nil || strings.HasPrefix(state, "Z") {
		return ""
	}
	return strings.TrimSpace(started)
}
