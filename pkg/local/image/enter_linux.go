// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/clusterhub/clusterhub/pkg/local/server/rootdir"
)

// Enter makes this process the program of an image, with its files, its user and no privileges. It returns only on failure.
func (i Image) Enter(args []string) error {
	runtime.LockOSThread()
	syscall.Umask(0o022)
	if err := os.MkdirAll(i.At, 0o700); err != nil {
		return err
	}
	mounts, err := i.mounts(args)
	if err != nil {
		return err
	}
	if err := rootdir.Enter(i.At, mounts); err != nil {
		return err
	}
	if err := errors.Join(rootdir.NoNewPrivileges(), rootdir.DropCapabilities()); err != nil {
		return err
	}
	if i.Tied {
		if err := rootdir.Tie(); err != nil {
			return err
		}
	}
	err = syscall.Exec(rootdir.Program, append([]string{rootdir.Program}, args...), containerEnv(os.Environ()))
	return fmt.Errorf("starting %s of the image %s: %w", rootdir.Program, filepath.Base(i.Root), err)
}
