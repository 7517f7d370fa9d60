// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// dialTimeout limits the time of a connection on this machine.
const dialTimeout = 10 * time.Second

// network is the network of a pod: a loopback of its own, and proxies for some servers of this machine, at the same addresses.
type network struct {
	// inside runs functions in the network.
	inside chan func()
	ctx    context.Context
	cancel context.CancelFunc
	doors  sync.WaitGroup

	mu   sync.Mutex
	open map[string]bool
}

func newNetwork() (*network, error) {
	n := &network{inside: make(chan func()), open: map[string]bool{}}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	entered := make(chan error)
	go n.live(entered)
	if err := <-entered; err != nil {
		n.cancel()
		return nil, fmt.Errorf("a network of its own: %w", err)
	}
	return n, nil
}

// do runs a function in the network, and waits for it.
func (n *network) do(f func()) error {
	done := make(chan struct{})
	select {
	case n.inside <- func() { defer close(done); f() }:
		<-done
		return nil
	case <-n.ctx.Done():
		return errors.New("the pod is gone")
	}
}

// close ends the network. Its processes have ended, or end with it.
func (n *network) close() {
	n.cancel()
	n.doors.Wait()
}

// dial connects to a server in the network.
func (n *network) dial(ctx context.Context, address string) (conn net.Conn, err error) {
	if e := n.do(func() { conn, err = (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", address) }); e != nil {
		return nil, e
	}
	return conn, err
}

// reach starts a proxy for a server of this machine. If the server does not respond, the proxy resets connections.
func (n *network) reach(address string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.open[address] {
		return nil
	}
	var listener net.Listener
	var err error
	if e := n.do(func() { listener, err = net.Listen("tcp", address) }); e != nil || err != nil {
		return errors.Join(e, err)
	}
	n.open[address] = true
	n.doors.Go(func() {
		serve(n.ctx, listener, func(ctx context.Context) (net.Conn, error) {
			return (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", address)
		}, nil)
	})
	return nil
}

// serve connects the clients of a listener to a server, until the context is done.
func serve(ctx context.Context, listener net.Listener, connect func(context.Context) (net.Conn, error), failed func(error)) {
	var clients sync.WaitGroup
	defer clients.Wait()
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })()
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		clients.Go(func() {
			defer client.Close()
			server, err := connect(ctx)
			if err != nil {
				if failed != nil && ctx.Err() == nil {
					failed(err)
				}
				_ = client.(*net.TCPConn).SetLinger(0)
				return
			}
			defer server.Close()
			defer context.AfterFunc(ctx, func() { _, _ = client.Close(), server.Close() })()
			var both sync.WaitGroup
			for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
				both.Go(func() {
					_, _ = io.Copy(way[1], way[0])
					_ = way[1].(*net.TCPConn).CloseWrite()
				})
			}
			both.Wait()
		})
	}
}
