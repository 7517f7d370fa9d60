// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package netns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	localserver "github.com/clusterhub/clusterhub/pkg/local/server"
	"github.com/clusterhub/clusterhub/test/await"
)

// goesInside is the name by which this program is started to be the process in the namespace.
const goesInside = "clusterhub-test-netns"

func init() {
	if os.Args[0] == goesInside {
		if err := beInside(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// firstDoor is the file descriptor of the first of the doors.
const firstDoor = 3

const capNetAdmin = 12

// inside returns the command that runs this program in a network namespace.
func inside() (*exec.Cmd, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{Path: exe, Args: []string{goesInside}}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, Cloneflags: syscall.CLONE_NEWNET}
	if uid, gid := os.Getuid(), os.Getgid(); uid != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		cmd.SysProcAttr.AmbientCaps = []uintptr{capNetAdmin}
	}
	return cmd, nil
}

// start starts the command. The kernel ties a process to the thread that has started it, so that thread waits for it.
func start(cmd *exec.Cmd) (ended chan struct{}, err error) {
	started := make(chan error)
	ended = make(chan struct{})
	go func() {
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_, _ = cmd.Process.Wait() // not cmd.Wait, which closes what other code reads
			close(ended)
		}
	}()
	return ended, <-started
}

// beInside executes orders until there are no more.
func beInside() error {
	for i := range doors {
		syscall.CloseOnExec(firstDoor + i)
	}
	if err := loopbackUp(); err != nil {
		return fmt.Errorf("the loopback of the network namespace: %w", err)
	}
	orders, answers := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	var hub *localhub.Instance
	defer func() {
		if hub != nil {
			hub.Kill()
		}
	}()
	for {
		var o order
		if err := orders.Decode(&o); err != nil {
			return nil // the test is over
		}
		var a answer
		var err error
		switch {
		case o.Start != nil:
			hub, err = begin(o.Start)
		case o.Dial != "":
			var conn net.Conn
			conn, err = net.DialTimeout("tcp", o.Dial, 5*time.Second)
			if err == nil {
				err = conn.Close()
			}
		default:
			a.Interfaces, err = interfaces()
		}
		if err != nil {
			a.Error = err.Error()
		}
		if err := answers.Encode(a); err != nil {
			return err
		}
	}
}

// begin starts the cluster, and opens the doors to it.
func begin(own *plain) (*localhub.Instance, error) {
	ctx, cancel := context.WithTimeout(context.Background(), await.Limit)
	defer cancel()
	hub, err := localhub.Start(ctx, own.config())
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(own.Dir, "ports.json"))
	var ports map[string]int
	if err == nil {
		err = json.Unmarshal(data, &ports)
	}
	if err != nil {
		return hub, err
	}
	for i, door := range doors {
		listener, err := net.FileListener(os.NewFile(uintptr(firstDoor+i), door))
		if err != nil {
			return hub, err
		}
		go open(listener, localserver.Address(ports[door]))
	}
	return hub, nil
}

// open forwards connections from outside to one address.
func open(listener net.Listener, address string) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer client.Close()
			server, err := net.Dial("tcp", address)
			if err != nil {
				return
			}
			defer server.Close()
			copyBoth(client.(*net.TCPConn), server.(*net.TCPConn))
		}()
	}
}

func interfaces() (names []string, err error) {
	all, err := net.Interfaces()
	for _, i := range all {
		names = append(names, i.Name)
	}
	return names, err
}

// loopbackUp enables the loopback of the namespace.
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
