// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package rootdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Constants of the system that package syscall does not have.
const (
	capSysChroot      = 18
	capSysAdmin       = 21
	prSetNoNewPrivs   = 38
	prCapAmbient      = 47
	prCapAmbientClear = 4
)

// Own configures a process that is about to be started: it gets mounts of its own, and a user and a group that are the caller's own outside of it. So
// it needs no privilege, where users may create user namespaces.
func Own(attr *syscall.SysProcAttr, user, group int) {
	attr.Cloneflags |= syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: user, HostID: os.Getuid(), Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: group, HostID: os.Getgid(), Size: 1}}
	attr.AmbientCaps = []uintptr{capSysChroot, capSysAdmin}
}

// Enter makes the mounts the root directory of this process, on an empty folder. The root directory itself is read-only.
func Enter(root string, mounts []Mount) error {
	// Mounts from here on are visible to no other process.
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := syscall.Mount("tmpfs", root, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, "mode=0755"); err != nil {
		return fmt.Errorf("mounting the root directory: %w", err)
	}
	for _, m := range mounts {
		if err := m.mount(filepath.Join(root, m.To)); err != nil {
			return fmt.Errorf("mounting %s: %w", m.To, err)
		}
	}
	if err := syscall.Mount("", root, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY|syscall.MS_NOSUID|syscall.MS_NODEV, ""); err != nil {
		return fmt.Errorf("making the root directory read-only: %w", err)
	}
	if err := errors.Join(syscall.Chroot(root), os.Chdir("/")); err != nil {
		return fmt.Errorf("changing the root directory: %w", err)
	}
	return nil
}

func (m Mount) mount(target string) error {
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
	how := uintptr(syscall.MS_BIND)
	if m.Recursive {
		how |= syscall.MS_REC
	}
	if err := syscall.Mount(m.From, target, "", how, ""); err != nil {
		return err
	}
	var of syscall.Statfs_t
	if err := syscall.Statfs(target, &of); err != nil {
		return err
	}
	// Restrictions of this machine cannot be lifted.
	flags := uintptr(of.Flags)&(syscall.MS_NOSUID|syscall.MS_NODEV|syscall.MS_NOEXEC) | syscall.MS_BIND | syscall.MS_REMOUNT | syscall.MS_NOSUID
	if !m.Writable {
		flags |= syscall.MS_RDONLY
	}
	if !m.Device {
		flags |= syscall.MS_NODEV
	}
	return syscall.Mount("", target, "", flags, "")
}

// NoNewPrivileges prevents this thread, and what it executes, from getting new privileges.
func NoNewPrivileges() error {
	if err := prctl(prSetNoNewPrivs, 1); err != nil {
		return fmt.Errorf("setting no_new_privs: %w", err)
	}
	return nil
}

// DropCapabilities drops all capabilities of what this thread executes, if it runs as another user than root.
func DropCapabilities() error {
	if err := prctl(prCapAmbient, prCapAmbientClear); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	return nil
}

// Tie ends this process together with the thread that has started it. After a change of the user it is no longer tied.
func Tie() error { return prctl(syscall.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL)) }

func prctl(option int, argument uintptr) error {
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, uintptr(option), argument, 0, 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}
