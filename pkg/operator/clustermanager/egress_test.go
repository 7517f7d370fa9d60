// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"

	localserver "github.com/clusterhub/clusterhub/pkg/local/server"
)

// egress is the network through which a hub's kube-apiserver reaches the Services of the management cluster.
type egress struct {
	lock   sync.Mutex
	routes map[string]string // addresses on this machine, by host:port
}

func (e *egress) route(address string, port int) {
	e.lock.Lock()
	defer e.lock.Unlock()
	if e.routes == nil {
		e.routes = map[string]string{}
	}
	e.routes[address] = localserver.Address(port)
}

// start returns the flags of a kube-apiserver that reaches all Services through egress.
func (e *egress) start(t *testing.T) []string {
	t.Helper()
	flags, stop, err := localserver.Egress(e.dial).Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return flags
}

func (e *egress) dial(ctx context.Context, address string) (net.Conn, error) {
	e.lock.Lock()
	to := e.routes[address]
	e.lock.Unlock()
	if to == "" {
		return nil, fmt.Errorf("there is no way to %s", address)
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", to)
}
