// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/clusterhub/clusterhub/pkg/localserver"
)

// stopGrace is how long a process may take to end by itself.
const stopGrace = 15 * time.Second

// process is a process with a name in a directory, whether it runs or not. It is told from all others by a lock on a file
// that it inherits when it is started and holds as long as it lives, however it ends and whoever started it. A process id
// alone would not do: a provider can be killed before it writes one down, and the system gives ids to others later.
type process struct {
	dir, name       string
	endWithProvider bool
}

// script writes its process id down, and becomes the process: there is no moment in which the process runs and nobody can
// know its id.
const script = `echo $$ >"$1" && shift && exec "$@"`

func (p process) file(suffix string) string { return filepath.Join(p.dir, p.name+suffix) }

func (p process) log() string { return p.file(".log") }

func (p process) running() (bool, error) {
	lock, err := os.Open(p.file(".lock"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer lock.Close()
	return tryLock(lock, syscall.LOCK_SH)
}

// tryLock returns true if another process has the lock.
func tryLock(file *os.File, how int) (taken bool, err error) {
	err = syscall.Flock(int(file.Fd()), how|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}

// runs says whether the process was started with this command line.
func (p process) runs(bin string, args []string) bool {
	data, err := os.ReadFile(p.file(".cmdline"))
	return err == nil && bytes.Equal(data, cmdline(bin, args))
}

func cmdline(bin string, args []string) []byte {
	return []byte(strings.Join(append([]string{bin}, args...), "\n") + "\n")
}

// start starts the process, which must not run. Its output goes to the log.
func (p process) start(bin string, args []string) error {
	lock, err := os.OpenFile(p.file(".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close() // the process still has it
	if taken, err := tryLock(lock, syscall.LOCK_EX); err != nil || taken {
		return errors.Join(err, fmt.Errorf("%s runs already in %s", p.name, p.dir))
	}
	if err := os.Remove(p.file(".pid")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := localserver.WriteFile(p.file(".cmdline"), cmdline(bin, args)); err != nil {
		return err
	}
	_ = os.Rename(p.log(), p.log()+".previous")
	out, err := os.OpenFile(p.log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.Command("/bin/sh", append([]string{"-c", script, p.name, p.file(".pid"), bin}, args...)...)
	cmd.Dir = p.dir
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = out, out, []*os.File{lock}
	if err := localserver.Start(cmd, p.endWithProvider); err != nil {
		return fmt.Errorf("%s cannot be started: %w", p.name, err)
	}
	go func() { _ = cmd.Wait() }() // the log says how it ended
	return nil
}

// restart stops the process and starts it as it was.
func (p process) restart() error {
	data, err := os.ReadFile(p.file(".cmdline"))
	if err != nil {
		return err
	}
	line := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	if err := p.stop(); err != nil {
		return err
	}
	return p.start(line[0], line[1:])
}

// stop ends the process, and kills it if it takes longer than stopGrace.
func (p process) stop() error { return p.end(syscall.SIGTERM) }

// kill ends the process without letting it know.
func (p process) kill() error { return p.end(syscall.SIGKILL) }

func (p process) end(signal syscall.Signal) error {
	signalled := 0
	for started := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		if running, err := p.running(); err != nil || !running {
			return err
		}
		waited := time.Since(started)
		switch pid := p.pid(); {
		case waited > 2*stopGrace:
			return fmt.Errorf("%s in %s does not end (process %d)", p.name, p.dir, pid)
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

// pid is the id of the process, which must be running; 0 in the moment before it has written it down.
func (p process) pid() int {
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

// complaint is why the process has ended.
func (p process) complaint() error {
	return fmt.Errorf("%s has ended: %s; its log is %s", p.name, localserver.Complaint(p.log()), p.log())
}

// supervise starts the process unless it runs with this command line already. When one that was started has ended before it
// was ready, this is said instead, once.
func (p *Provider) supervise(proc process, bin string, args []string) error {
	running, err := proc.running()
	if err != nil {
		return err
	}
	if running && proc.runs(bin, args) {
		return nil
	}
	if running {
		if err := proc.stop(); err != nil {
			return err
		}
	} else if p.attempt(proc, false) {
		return proc.complaint()
	}
	if err := proc.start(bin, args); err != nil {
		return err
	}
	p.attempt(proc, true)
	return nil
}

// attempt notes whether a process has been started and not been seen ready since, and returns what was noted before.
func (p *Provider) attempt(proc process, pending bool) bool {
	p.attemptsMu.Lock()
	defer p.attemptsMu.Unlock()
	before := p.attempts[proc]
	delete(p.attempts, proc)
	if pending {
		p.attempts[proc] = true
	}
	return before
}
