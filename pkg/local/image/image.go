// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package image starts programs of a local hub in their images, as `make roots` unpacks them: a folder NAME for each, with its files. A process is
// started as localhub's command Command, and becomes the program: see Enter.
package image

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	localserver "github.com/clusterhub/clusterhub/pkg/local/server"
	"github.com/clusterhub/clusterhub/pkg/local/server/rootdir"
)

// Command is the command of the program Binary that becomes a program of an image, in that image.
const (
	Binary  = "localhub"
	Command = "enter"
)

// Program returns the file of the program of an image.
func Program(dir, name string) string { return filepath.Join(dir, name, rootdir.Program) }

// Check returns an error with the command that gets the image of a program, if it is missing.
func Check(dir, name string) error {
	if _, err := os.Stat(Program(dir, name)); err != nil {
		return fmt.Errorf("the image of %s is not in %s: unpack it with `make roots`", name, dir)
	}
	return nil
}

// Mounts returns the files of an image as mounts.
func Mounts(root string) (all []rootdir.Mount, err error) {
	entries, err := os.ReadDir(root)
	for _, entry := range entries {
		all = append(all, rootdir.Mount{From: filepath.Join(root, entry.Name()), To: "/" + entry.Name()})
	}
	return all, err
}

// Image specifies how a process runs in an image.
type Image struct {
	// Root has the files of the image, and At is an empty folder for its root directory, which is created if missing.
	Root, At string
	// Dir is a folder of this machine that the process can read and write at the same path.
	Dir string
	// Temporary adds a writable folder /tmp.
	Temporary bool
	// Tied ends the process together with the process that has started it.
	Tied bool
}

// Args returns the arguments with which localhub becomes the program, up to the program's own.
func (i Image) Args() []string {
	return []string{Command, "--image=" + i.Root, "--at=" + i.At, "--share=" + i.Dir,
		fmt.Sprintf("--temporary=%t", i.Temporary), fmt.Sprintf("--tied=%t", i.Tied), "--"}
}

// mounts returns the mounts of the root directory of a process.
func (i Image) mounts(args []string) ([]rootdir.Mount, error) {
	files, err := Mounts(i.Root)
	if err != nil {
		return nil, err
	}
	mounts := append(append(rootdir.Devices(), rootdir.Mount{From: "/proc", To: "/proc", Recursive: true}), files...)
	// A container runtime writes these.
	for name, content := range map[string]string{"hosts": "127.0.0.1\tlocalhost\n::1\tlocalhost\n", "resolv.conf": "# No DNS servers are available.\n"} {
		file := i.At + "." + name
		if err := localserver.WriteFile(file, []byte(content)); err != nil {
			return nil, err
		}
		mounts = append(mounts, rootdir.Mount{From: file, To: "/etc/" + name})
	}
	if i.Temporary { // mounts in /tmp come after it
		tmp := i.At + ".tmp"
		if err := errors.Join(os.RemoveAll(tmp), os.MkdirAll(tmp, 0o700)); err != nil {
			return nil, err
		}
		mounts = append(mounts, rootdir.Mount{From: tmp, To: "/tmp", Writable: true})
	}
	if i.Dir != "" {
		mounts = append(mounts, rootdir.Mount{From: i.Dir, To: i.Dir, Writable: true})
	}
	// A pod would have a volume for each of these.
	for _, arg := range args {
		_, file, _ := strings.Cut(arg, "=")
		inside := i.Dir != "" && strings.HasPrefix(file, i.Dir+"/")
		if info, err := os.Stat(file); err == nil && filepath.IsAbs(file) && !inside && info.Mode().IsRegular() {
			mounts = append(mounts, rootdir.Mount{From: file, To: filepath.Clean(file)})
		}
	}
	return mounts, nil
}

// containerEnv returns the part of an environment that a container of ours has.
func containerEnv(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{"HOME", "KUBECONFIG", "LD_LIBRARY_PATH", "PATH", "PWD", "SHELL", "TMPDIR", "USER"}, name)
	})
}
