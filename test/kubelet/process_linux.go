// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/clusterhub/clusterhub/pkg/local/server/rootdir"
)

// becomesContainer is the name by which this program is started to become a container.
const becomesContainer = "clusterhub-test-container"

// The process that becomes a container reads its sandbox from one file descriptor, and writes an error to the other, which is closed when the program
// of the container starts.
const (
	sandboxFD = 3
	failureFD = 4
)

func init() {
	if os.Args[0] == becomesContainer {
		err := become()
		_, _ = fmt.Fprint(os.NewFile(failureFD, "failure"), err)
		os.Exit(128)
	}
}

// process is a container's process, running or ended.
type process struct {
	os    *os.Process
	ended chan struct{}
	// state is its exit state.
	state *os.ProcessState
}

// run starts a container in a network. All processes that it starts end with it, and at the latest with the network.
func run(n *network, s *sandbox, out io.Writer) (*process, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	sandboxRead, sandboxWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	failureRead, failureWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer failureRead.Close()
	cmd := &exec.Cmd{Path: exe, Args: []string{becomesContainer}, Env: []string{}, Stdout: out, Stderr: out, ExtraFiles: []*os.File{sandboxRead, failureWrite}}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid: true, Pdeathsig: syscall.SIGKILL,
		// With its own process IDs, all processes end with the first one.
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
	}
	if oneUser() {
		rootdir.Own(cmd.SysProcAttr, s.User, s.Group)
	}
	// The kernel ties a process to the thread that has started it: the thread of the network.
	if e := n.do(func() { err = cmd.Start() }); e != nil {
		err = e
	}
	_, _ = sandboxRead.Close(), failureWrite.Close()
	if err != nil {
		_ = sandboxWrite.Close()
		return nil, err
	}
	p := &process{os: cmd.Process, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		p.state = cmd.ProcessState
		close(p.ended)
	}()
	err = errors.Join(json.NewEncoder(sandboxWrite).Encode(s), sandboxWrite.Close())
	if failure, e := io.ReadAll(failureRead); err != nil || e != nil || len(failure) > 0 {
		_ = p.os.Kill()
		<-p.ended
		return nil, errors.Join(err, e, errors.New(string(failure)))
	}
	return p, nil
}

// exitCode returns the exit code of a process that has ended. For a signal it is 128 plus the signal, as with container runtimes.
func (p *process) exitCode() int {
	if status, ok := p.state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return p.state.ExitCode()
}

// hears reports whether the process has a handler for a signal.
func (p *process) hears(signal syscall.Signal) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.os.Pid))
	if err != nil {
		return false
	}
	_, caught, _ := strings.Cut(string(status), "\nSigCgt:\t")
	caught, _, _ = strings.Cut(caught, "\n")
	mask, err := strconv.ParseUint(caught, 16, 64)
	return err == nil && mask&(1<<(signal-1)) != 0
}

// tryContainer returns an error if containers cannot run.
func tryContainer(dir string) error {
	s := &sandbox{Root: dir, User: imageUser, Group: imageUser, Hostname: "try", NoNewPrivileges: true, Args: []string{"/nothing"},
		Mounts: rootdir.Devices()[:1]}
	n, err := newNetwork()
	if err != nil {
		return err
	}
	defer n.close()
	// The missing program is the last possible error.
	_, err = run(n, s, io.Discard)
	if err == nil || strings.Contains(err.Error(), nothingToRun) {
		return nil
	}
	return err
}

// nothingToRun is the error if everything but the program works.
const nothingToRun = "the program cannot be started"

// become makes this process a container. It returns only if that fails.
func become() error {
	runtime.LockOSThread()
	syscall.Umask(0o022)
	syscall.CloseOnExec(failureFD)
	var s sandbox
	from := os.NewFile(sandboxFD, "sandbox")
	if err := errors.Join(json.NewDecoder(from).Decode(&s), from.Close()); err != nil {
		return err
	}
	if err := syscall.Sethostname([]byte(s.Hostname)); err != nil {
		return fmt.Errorf("the name of the host: %w", err)
	}
	if err := rootdir.Enter(s.Root, s.Mounts); err != nil {
		return err
	}
	if err := s.dropRights(); err != nil {
		return err
	}
	return fmt.Errorf("%s: %s: %w", nothingToRun, s.Args[0], syscall.Exec(s.Args[0], s.Args, s.Env))
}

// dropRights switches to the user of the container, without capabilities.
func (s *sandbox) dropRights() error {
	if os.Getuid() == 0 {
		if err := errors.Join(syscall.Setgroups(s.Groups), syscall.Setgid(s.Group), syscall.Setuid(s.User)); err != nil {
			return fmt.Errorf("the user of the container: %w", err)
		}
	}
	if s.NoNewPrivileges {
		if err := rootdir.NoNewPrivileges(); err != nil {
			return err
		}
	}
	return errors.Join(rootdir.DropCapabilities(), rootdir.Tie())
}
