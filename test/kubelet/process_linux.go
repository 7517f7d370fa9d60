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
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// becomesContainer is the name by which this program is started to become a container.
const becomesContainer = "clusterhub-test-container"

// The process that becomes a container gets its sandbox by one descriptor, and says by the other what has failed. The other is closed
// when the program of the container runs.
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

// process is a container that runs, or did.
type process struct {
	os    *os.Process
	ended chan struct{}
	// state is how it ended.
	state *os.ProcessState
}

// run starts a container in a network. It ends with all that it has started, with the network at the latest.
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
		// With its own process ids, all of it ends with the first process.
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
	}
	if oneUser() {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: s.User, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: s.Group, HostID: os.Getgid(), Size: 1}}
		cmd.SysProcAttr.AmbientCaps = []uintptr{capSysChroot, capSysAdmin}
	}
	// The system ties a process to the thread that has started it: that of the network.
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

// exitCode is that of a process that has ended, with 128 and the signal as runtimes of containers have it.
func (p *process) exitCode() int {
	if status, ok := p.state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return p.state.ExitCode()
}

// hears is whether the process has a handler for a signal.
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

// tryContainer is whether containers can run at all.
func tryContainer(dir string) error {
	s := &sandbox{Root: dir, User: imageUser, Group: imageUser, Hostname: "try", NoNewPrivileges: true, Args: []string{"/nothing"},
		Mounts: []mount{{From: "/dev/null", To: "/dev/null", Writable: true, Device: true}}}
	n, err := newNetwork()
	if err != nil {
		return err
	}
	defer n.close()
	// That there is no program is what is said last.
	_, err = run(n, s, io.Discard)
	if err == nil || strings.Contains(err.Error(), nothingToRun) {
		return nil
	}
	return err
}

// Numbers of the system that package syscall does not have.
const (
	capSysChroot      = 18
	capSysAdmin       = 21
	prSetNoNewPrivs   = 38
	prCapAmbient      = 47
	prCapAmbientClear = 4
)

// nothingToRun is said when all is there but the program.
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
	if err := s.mountAll(); err != nil {
		return err
	}
	if err := syscall.Sethostname([]byte(s.Hostname)); err != nil {
		return fmt.Errorf("the name of the host: %w", err)
	}
	if err := errors.Join(syscall.Chroot(s.Root), os.Chdir("/")); err != nil {
		return fmt.Errorf("the root directory: %w", err)
	}
	if err := s.dropRights(); err != nil {
		return err
	}
	return fmt.Errorf("%s: %s: %w", nothingToRun, s.Args[0], syscall.Exec(s.Args[0], s.Args, s.Env))
}

func (s *sandbox) mountAll() error {
	// What is mounted from here on is seen by no other process.
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("mounts of its own: %w", err)
	}
	if err := syscall.Mount("tmpfs", s.Root, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, "mode=0755"); err != nil {
		return fmt.Errorf("the root directory: %w", err)
	}
	for _, m := range s.Mounts {
		if err := m.mount(filepath.Join(s.Root, m.To)); err != nil {
			return fmt.Errorf("mounting %s: %w", m.To, err)
		}
	}
	if err := syscall.Mount("", s.Root, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY|syscall.MS_NOSUID|syscall.MS_NODEV, ""); err != nil {
		return fmt.Errorf("making the root directory read-only: %w", err)
	}
	return nil
}

func (m mount) mount(target string) error {
	info, err := os.Stat(m.From)
	if err != nil {
		return err
	}
	folder := target
	if !info.IsDir() {
		folder = filepath.Dir(target)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if !info.IsDir() {
		if err := os.WriteFile(target, nil, 0o644); err != nil {
			return err
		}
	}
	if err := syscall.Mount(m.From, target, "", syscall.MS_BIND, ""); err != nil {
		return err
	}
	var of syscall.Statfs_t
	if err := syscall.Statfs(target, &of); err != nil {
		return err
	}
	// What is forbidden on this machine cannot be allowed again.
	flags := uintptr(of.Flags)&(syscall.MS_NOSUID|syscall.MS_NODEV|syscall.MS_NOEXEC) | syscall.MS_BIND | syscall.MS_REMOUNT | syscall.MS_NOSUID
	if !m.Writable {
		flags |= syscall.MS_RDONLY
	}
	if !m.Device {
		flags |= syscall.MS_NODEV
	}
	return syscall.Mount("", target, "", flags, "")
}

// dropRights leaves the process with the user of the container, and with no capability.
func (s *sandbox) dropRights() error {
	if os.Getuid() == 0 {
		if err := errors.Join(syscall.Setgroups(s.Groups), syscall.Setgid(s.Group), syscall.Setuid(s.User)); err != nil {
			return fmt.Errorf("the user of the container: %w", err)
		}
	}
	if s.NoNewPrivileges {
		if err := prctl(prSetNoNewPrivs, 1); err != nil {
			return fmt.Errorf("no new privileges: %w", err)
		}
	}
	if err := prctl(prCapAmbient, prCapAmbientClear); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	// Another user is not tied any more to the thread that has started this process.
	return prctl(syscall.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL))
}

func prctl(option int, argument uintptr) error {
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, uintptr(option), argument, 0, 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}
