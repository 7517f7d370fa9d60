// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// stopGrace is the maximum time for a process to exit by itself.
const stopGrace = 30 * time.Second

// Process is a process with a name in a directory, whether it runs or not. It is identified by a lock on a file that it inherits when it is started
// and holds as long as it lives, however it exits and whatever process started it. A process id alone would not be sufficient: the starting process
// can be killed before it writes the id, and the system reuses ids.
type Process struct {
	// Dir is the working directory of the process and has its files, which are named by Name.
	Dir, Name string
	// LogFile is the file for its output, <Dir>/<Name>.log by default.
	LogFile string
	// Tied ends the process together with the one that has started it, on Linux.
	Tied bool
	// SharesSession leaves the process in the session of the one that starts it, in a process group of its own. Without it the process has its own
	// session. Linux gives each session an equal share of the processors (sched_autogroup_enabled): the processes of one program should share one.
	SharesSession bool
	// OwnMounts gives the process mounts of its own, in which it can create a root directory for itself; see rootdir.Enter. Linux only.
	OwnMounts bool
}

// PreviousLog is the suffix of the previous log.
const PreviousLog = ".previous"

// script writes its process id, and becomes the process: there is no moment in which the process runs with an unknown id.
const script = `echo $$ >"$1" && shift && exec "$@"`

func (p Process) file(suffix string) string { return filepath.Join(p.Dir, p.Name+suffix) }

// Log returns the file with the output of the process since its last start.
func (p Process) Log() string {
	if p.LogFile != "" {
		return p.LogFile
	}
	return p.file(".log")
}

// Running reports whether the process runs, or one that was just started as its successor.
func (p Process) Running() (bool, error) {
	lock, err := os.Open(p.file(".lock"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer lock.Close()
	return TryLock(lock, syscall.LOCK_SH)
}

// TryLock locks a file for as long as that is open: syscall.LOCK_SH is a shared lock, syscall.LOCK_EX an exclusive one. It returns true if another
// process has the lock.
func TryLock(file *os.File, how int) (taken bool, err error) {
	err = syscall.Flock(int(file.Fd()), how|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}

// Runs reports whether the process was started with this command line.
func (p Process) Runs(bin string, args []string) bool {
	data, err := os.ReadFile(p.file(".cmdline"))
	return err == nil && bytes.Equal(data, cmdline(bin, args))
}

func cmdline(bin string, args []string) []byte {
	return []byte(strings.Join(append([]string{bin}, args...), "\n") + "\n")
}

// kubernetesPrograms lists the servers that are not ours.
var kubernetesPrograms = []string{"etcd", "kube-apiserver", "kube-controller-manager"}

// environment returns the part of this process's environment for a program. The mutation detectors in clients, with which tests run, are for our own
// programs: Kubernetes' servers would spend a tenth of their processor time on comparing their caches.
func environment(bin string) []string {
	all := os.Environ()
	if !slices.Contains(kubernetesPrograms, filepath.Base(bin)) {
		return all
	}
	return slices.DeleteFunc(all, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return strings.HasPrefix(name, "KUBE_") && strings.HasSuffix(name, "_DETECTOR")
	})
}

// Start starts the process, which must not run. Its environment is env and this process's, for Kubernetes' servers without detectors.
func (p Process) Start(bin string, args []string, env ...string) error {
	lock, err := os.OpenFile(p.file(".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close() // the process still has it
	if err := p.claim(lock); err != nil {
		return err
	}
	if err := os.Remove(p.file(".pid")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := WriteFile(p.file(".cmdline"), cmdline(bin, args)); err != nil {
		return err
	}
	_ = os.Rename(p.Log(), p.Log()+PreviousLog)
	out, err := os.OpenFile(p.Log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.Command("/bin/sh", append([]string{"-c", script, p.Name, p.file(".pid"), bin}, args...)...)
	cmd.Dir, cmd.Env = p.Dir, append(environment(bin), env...)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = out, out, []*os.File{lock}
	if err := p.start(cmd); err != nil {
		return fmt.Errorf("starting %s: %w", p.Name, err)
	}
	ending := &ending{known: make(chan struct{})}
	endings.Store(p.file(""), ending)
	go func() {
		_ = cmd.Wait()
		ending.how = cmd.ProcessState.String()
		close(ending.known)
	}()
	return nil
}

// lockTimeout is the maximum time that others may hold the lock of a process to check whether it runs.
const lockTimeout = time.Second

// claim takes the lock of a process that is about to be started. Processes that only check whether it runs hold the lock for a moment.
func (p Process) claim(lock *os.File) error {
	for started := time.Now(); ; time.Sleep(time.Millisecond) {
		taken, err := TryLock(lock, syscall.LOCK_EX)
		if err == nil && !taken {
			return nil
		}
		if err == nil {
			taken, err = TryLock(lock, syscall.LOCK_SH)
		}
		if err != nil || taken || time.Since(started) > lockTimeout {
			return errors.Join(err, fmt.Errorf("%s is already running in %s", p.Name, p.Dir))
		}
	}
}

// Restart stops the process and starts it with the same command line.
func (p Process) Restart() error {
	data, err := os.ReadFile(p.file(".cmdline"))
	if err != nil {
		return err
	}
	line := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	if err := p.Stop(); err != nil {
		return err
	}
	return p.Start(line[0], line[1:])
}

// Stop stops the process, and kills it if it takes longer than stopGrace.
func (p Process) Stop() error { return p.end(syscall.SIGTERM) }

// Kill kills the process.
func (p Process) Kill() error { return p.end(syscall.SIGKILL) }

func (p Process) end(signal syscall.Signal) error {
	signalled := 0
	for started := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		if running, err := p.Running(); err != nil || !running {
			return err
		}
		waited := time.Since(started)
		switch pid := p.PID(); {
		case waited > 2*stopGrace:
			return fmt.Errorf("%s in %s did not exit (process %d)", p.Name, p.Dir, pid)
		case waited > stopGrace:
			signal, signalled = syscall.SIGKILL, 0
			fallthrough
		default:
			if pid > 1 && pid != signalled {
				_ = syscall.Kill(pid, signal)
				signalled = pid
			}
		}
	}
}

// PID returns the id of the process, which must be running; 0 until the process has written it.
func (p Process) PID() int {
	data, err := os.ReadFile(p.file(".pid"))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return 0
	}
	return pid
}

// Ended returns an error of one line with the reason why the process has exited, as far as known.
func (p Process) Ended() error {
	how := ""
	if known := p.HowEnded(); known != "" {
		how = fmt.Sprintf(" (%s)", known)
	}
	return fmt.Errorf("%s exited%s: %s; see its log %s", p.Name, how, Complaint(p.Log()), p.Log())
}

// HowEnded returns how a process that no longer runs has exited, as the system reports it: "signal: killed". It is empty if another process
// has started it: the system reports it to that one only.
func (p Process) HowEnded() string {
	of, ok := endings.Load(p.file(""))
	if !ok {
		return ""
	}
	ending := of.(*ending)
	select {
	case <-ending.known:
		return ending.how
	case <-time.After(tellLimit): // another one has been started since
		return ""
	}
}

// tellLimit is the maximum time for the system to report how a process has exited, after that has released its lock.
const tellLimit = time.Second

// ending is the exit of a process that this one has started.
type ending struct {
	known chan struct{} // closed when how is known
	how   string
}

// endings has the exits of the processes that this one has started last.
var endings sync.Map // by their files
