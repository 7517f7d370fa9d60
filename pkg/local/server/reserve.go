// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"time"
)

// reservedFor is the time for which no other process of this user chooses a chosen port. A server listens on it long before.
const reservedFor = 10 * time.Minute

// reservations are the ports that this process has chosen. On Linux, other processes detect them by a socket for each port in the abstract namespace:
// it belongs to the network namespace, as ports do, leaves no file, and ends with the process.
type reservations struct {
	// name is the name of the socket of a port, without the port.
	name string
	now  func() time.Time

	mu     sync.Mutex
	chosen map[int]reservation
}

type reservation struct {
	since  time.Time
	socket io.Closer
}

var chosen = newReservations(fmt.Sprintf("@clusterhub-port-%d", os.Getuid()))

func newReservations(name string) *reservations {
	return &reservations{name: name, now: time.Now, chosen: map[int]reservation{}}
}

// reserve reports whether a port can be chosen. Where abstract sockets do not exist, it only considers this process.
func (r *reservations) reserve(port int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for reserved, of := range r.chosen {
		if r.now().Sub(of.since) > reservedFor {
			delete(r.chosen, reserved)
			_ = of.socket.Close()
		}
	}
	if _, ok := r.chosen[port]; ok {
		return false
	}
	socket, err := r.socket(port)
	if err != nil {
		return false
	}
	r.chosen[port] = reservation{since: r.now(), socket: socket}
	return true
}

func (r *reservations) socket(port int) (io.Closer, error) {
	if runtime.GOOS != "linux" {
		return io.NopCloser(nil), nil
	}
	return net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: fmt.Sprintf("%s-%d", r.name, port)})
}
