// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package rootdir_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/clusterhub/clusterhub/pkg/local/server/rootdir"
)

// inside has the folders of a process of this test that is in a root directory of its own.
const inside = "CLUSTERHUB_TEST_INSIDE"

type folders struct{ Root, Image, Shared string }

// seen has the observations of that process.
type seen struct {
	User, Group int
	Entries     []string
	Hosts       string
	Wrote       map[string]string
	Privileges  string
}

func TestMain(m *testing.M) {
	if data := os.Getenv(inside); data != "" {
		runtime.LockOSThread()
		found, err := look(data)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		_ = json.NewEncoder(os.Stdout).Encode(found)
		return
	}
	os.Exit(m.Run())
}

func look(data string) (*seen, error) {
	var f folders
	if err := json.Unmarshal([]byte(data), &f); err != nil {
		return nil, err
	}
	mounts := append(rootdir.Devices(), rootdir.Mount{From: "/proc", To: "/proc", Recursive: true},
		rootdir.Mount{From: f.Image, To: "/usr"}, rootdir.Mount{From: filepath.Join(f.Image, "hosts"), To: "/etc/hosts"},
		rootdir.Mount{From: f.Shared, To: f.Shared, Writable: true})
	if err := rootdir.Enter(f.Root, mounts); err != nil {
		return nil, err
	}
	if err := errors.Join(rootdir.NoNewPrivileges(), rootdir.DropCapabilities(), rootdir.Tie()); err != nil {
		return nil, err
	}
	found := &seen{User: os.Getuid(), Group: os.Getgid(), Wrote: map[string]string{}}
	entries, err := os.ReadDir("/")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		found.Entries = append(found.Entries, entry.Name())
	}
	hosts, err := os.ReadFile("/etc/hosts")
	if err != nil {
		return nil, err
	}
	found.Hosts = string(hosts)
	for _, file := range []string{"/file", "/usr/file", "/etc/file", "/etc/hosts", "/dev/null", f.Shared + "/file"} {
		found.Wrote[file] = fmt.Sprint(os.WriteFile(file, []byte("written"), 0o600))
	}
	status, err := os.ReadFile("/proc/thread-self/status")
	found.Privileges = string(status)
	return found, err
}

// TestEnter inspects a root directory from inside.
func TestEnter(t *testing.T) {
	f := folders{Root: t.TempDir(), Image: t.TempDir(), Shared: t.TempDir()}
	if err := os.WriteFile(filepath.Join(f.Image, "hosts"), []byte("the hosts"), 0o644); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	var out, complaint bytes.Buffer
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), inside+"="+string(data)), &out, &complaint
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	rootdir.Own(cmd.SysProcAttr, rootdir.User, rootdir.User)
	if err := cmd.Run(); errors.Is(err, os.ErrPermission) {
		t.Skipf("users may make no user namespaces here: %v", err)
	} else if err != nil {
		t.Fatalf("%v: %s", err, complaint.String())
	}
	var found seen
	if err := json.Unmarshal(out.Bytes(), &found); err != nil {
		t.Fatal(err)
	}
	if found.User != rootdir.User || found.Group != rootdir.User {
		t.Errorf("it is the user %d and the group %d", found.User, found.Group)
	}
	top, _, _ := strings.Cut(f.Shared[1:], "/")
	for _, entry := range found.Entries {
		if !strings.Contains(" dev etc proc usr "+top+" ", " "+entry+" ") {
			t.Errorf("it sees /%s", entry)
		}
	}
	if found.Hosts != "the hosts" {
		t.Errorf("/etc/hosts is %q", found.Hosts)
	}
	for file, said := range found.Wrote {
		writable := file == "/dev/null" || strings.HasPrefix(file, f.Shared)
		if writable != (said == "<nil>") {
			t.Errorf("writing to %s: %s", file, said)
		}
	}
	if data, err := os.ReadFile(filepath.Join(f.Shared, "file")); err != nil || string(data) != "written" {
		t.Errorf("the shared folder has %q (%v)", data, err)
	}
	for _, want := range []string{"NoNewPrivs:\t1\n", "CapAmb:\t0000000000000000\n"} {
		if !strings.Contains(found.Privileges, want) {
			t.Errorf("expected %q in\n%s", want, found.Privileges)
		}
	}
}
