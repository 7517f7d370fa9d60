// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
)

// Egress connects to Services for a kube-apiserver: this machine has no DNS that resolves their names, and no route to their addresses. It gets
// HOST:PORT.
type Egress func(ctx context.Context, address string) (net.Conn, error)

// Start returns the flags of a kube-apiserver that reaches all Services through e, until stop is called.
func (e Egress) Start() (flags []string, stop func(), err error) {
	dir, err := os.MkdirTemp("", "egress") // the path of a socket cannot be long
	if err != nil {
		return nil, nil, err
	}
	socket, file := filepath.Join(dir, "s"), filepath.Join(dir, "egress.yaml")
	config := fmt.Sprintf(`{"apiVersion":"apiserver.k8s.io/v1beta1","kind":"EgressSelectorConfiguration","egressSelections":[
		{"name":"cluster","connection":{"proxyProtocol":"HTTPConnect","transport":{"uds":{"udsName":%q}}}}]}`, socket)
	err = os.WriteFile(file, []byte(config), 0o600)
	var l net.Listener
	if err == nil {
		l, err = net.Listen("unix", socket)
	}
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { e.serve(ctx, conn) })
		}
	})
	return []string{"--egress-selector-config-file=" + file}, func() {
		cancel()
		_ = l.Close()
		serving.Wait()
		_ = os.RemoveAll(dir)
	}, nil
}

func (e Egress) serve(ctx context.Context, client net.Conn) {
	defer client.Close()
	defer context.AfterFunc(ctx, func() { _ = client.Close() })()
	from := bufio.NewReader(client)
	request, err := http.ReadRequest(from)
	if err != nil {
		return
	}
	server, err := e(ctx, request.RequestURI)
	if err != nil {
		_, _ = io.WriteString(client, "HTTP/1.1 502 Bad Gateway\r\n\r\n")
		return
	}
	defer server.Close()
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if _, err := io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		_, _ = io.Copy(client, server)
		_ = client.Close()
	}()
	_, _ = io.Copy(server, from)
	_ = server.Close()
	<-answered
}
