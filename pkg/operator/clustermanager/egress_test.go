// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// egress is the network through which a hub's kube-apiserver reaches the Services of the management cluster: this machine has no DNS
// that knows them, and no addresses for them.
type egress struct {
	lock   sync.Mutex
	routes map[string]string // the address of this machine, by host:port
}

func (e *egress) route(address string, port int) {
	e.lock.Lock()
	defer e.lock.Unlock()
	if e.routes == nil {
		e.routes = map[string]string{}
	}
	e.routes[address] = fmt.Sprintf("127.0.0.1:%d", port)
}

// start returns the flags of a kube-apiserver that reaches all Services so.
func (e *egress) start(t *testing.T) []string {
	t.Helper()
	dir, err := os.MkdirTemp("", "egress") // the name of a socket cannot be long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go e.serve(conn)
		}
	}()
	file := filepath.Join(dir, "egress.yaml")
	config := fmt.Sprintf(`{"apiVersion":"apiserver.k8s.io/v1beta1","kind":"EgressSelectorConfiguration","egressSelections":[
		{"name":"cluster","connection":{"proxyProtocol":"HTTPConnect","transport":{"uds":{"udsName":%q}}}}]}`, socket)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"--egress-selector-config-file=" + file}
}

func (e *egress) serve(conn net.Conn) {
	defer conn.Close()
	request, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return
	}
	e.lock.Lock()
	to := e.routes[request.RequestURI]
	e.lock.Unlock()
	server, err := net.Dial("tcp", to)
	if to == "" || err != nil {
		_, _ = io.WriteString(conn, "HTTP/1.1 502 Bad Gateway\r\n\r\n")
		return
	}
	defer server.Close()
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
	go func() {
		_, _ = io.Copy(server, conn)
		_ = server.Close()
	}()
	_, _ = io.Copy(conn, server)
}
