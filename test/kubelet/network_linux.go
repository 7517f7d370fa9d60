// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"errors"
	"runtime"
	"syscall"
	"unsafe"
)

// live is the only thread in a network. Processes that it starts are in it, too. It ends with the network.
func (n *network) live(entered chan<- error) {
	runtime.LockOSThread() // and never unlocked: the thread ends with this function
	err := syscall.Unshare(syscall.CLONE_NEWNET)
	if err == nil {
		err = loopbackUp()
	}
	entered <- err
	if err != nil {
		return
	}
	for {
		select {
		case f := <-n.inside:
			f()
		case <-n.ctx.Done():
			return
		}
	}
}

// loopbackUp enables the loopback of a network.
func loopbackUp() error {
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	request := struct {
		name  [16]byte
		flags uint16
		_     [22]byte
	}{flags: syscall.IFF_UP | syscall.IFF_RUNNING}
	copy(request.name[:], "lo")
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(socket), syscall.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&request)))
	if errno != 0 {
		err = errno
	}
	return errors.Join(err, syscall.Close(socket))
}
