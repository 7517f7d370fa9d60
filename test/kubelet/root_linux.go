// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// inUserNamespace is an environment variable that is set if this program is root only in a user namespace that AsRoot has created.
const inUserNamespace = "CLUSTERHUB_TEST_USER_NAMESPACE"

// AsRoot must be called at the beginning of TestMain. If this program is not root, it runs the program again in a user namespace, in which it is
// root, and exits with its exit code. If that is not possible it returns, and Start reports the error.
func AsRoot() {
	if os.Getuid() == 0 {
		return
	}
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), inUserNamespace+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Cloneflags: syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}}
	err := cmd.Run()
	var failed *exec.ExitError
	switch {
	case err == nil:
		os.Exit(0)
	case errors.As(err, &failed):
		os.Exit(failed.ExitCode())
	}
	fmt.Fprintf(os.Stderr, "A user namespace cannot be made: %v\n", err)
}

// oneUser reports whether this program can only use its own user.
func oneUser() bool { return os.Getuid() != 0 || os.Getenv(inUserNamespace) != "" }
