// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// emulator returns the path of a program that runs arm64 programs on this machine, or skips the test if none is installed.
func emulator(t *testing.T) string {
	t.Helper()
	unpacked, err := filepath.Abs(filepath.Join("..", "..", "_output", "debian", "usr", "bin", "qemu-aarch64-static"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{unpacked, "qemu-aarch64-static"} {
		if found, err := exec.LookPath(name); err == nil {
			return found
		}
	}
	t.Skip("nothing here runs programs for arm64: run hack/debian.sh --unpack qemu-user-static")
	return ""
}

// TestImages_StartOnArm64 starts what is in images for arm64, with nothing but the files of the image, as the user of a container. Of our
// programs it is hub-ui: all are built in the same way, and the others would take minutes to compile for another architecture.
func TestImages_StartOnArm64(t *testing.T) {
	qemu := emulator(t)
	dir := programs(t, "arm64", "-trimpath")
	build := exec.CommandContext(t.Context(), "go", "build", "-C", "../../..", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(dir, "hub-ui"), "./cmd/hub-ui")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=arm64")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	roots := t.TempDir()
	if err := run(t.Context(), []string{"unpack", "--from=" + built(t, "arm64="+dir), "--output=" + roots, "--arch=arm64"}); err != nil {
		t.Fatal(err)
	}
	for component, want := range map[string]string{"hub-agent": "runs on arm64", "hub-ui": "--allowed-host"} {
		root := filepath.Join(roots, component)
		program, err := os.ReadFile(qemu)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, "qemu"), program, 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "/qemu", entrypoint, "--help")
		cmd.Dir, cmd.Env = "/", []string{}
		const user = 65532
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Chroot: root, Cloneflags: syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: user, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: user, HostID: os.Getgid(), Size: 1}},
		}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v, and it says %.500q, expected %q", component, err, out, want)
		}
	}
}
