// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package kubelet

import (
	"errors"
	"io"
	"os"
	"syscall"
)

var errNotHere = errors.New("containers are of Linux")

type process struct {
	os    *os.Process
	ended chan struct{}
}

func run(*network, *sandbox, io.Writer) (*process, error) { return nil, errNotHere }

func (n *network) live(entered chan<- error) { entered <- errNotHere }

func (p *process) exitCode() int { return -1 }

func (p *process) hears(syscall.Signal) bool { return false }

func tryContainer(string) error { return errNotHere }

// AsRoot does nothing on this system.
func AsRoot() {}

func oneUser() bool { return true }
