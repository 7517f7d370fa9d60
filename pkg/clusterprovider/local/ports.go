// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
)

// Ports that no system gives to clients by itself: between the choice of a port and its use, a connection could take it.
const firstPort, lastPort = 10_000, 32_767

func address(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

func free(port int) bool {
	l, err := net.Listen("tcp", address(port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// choosePorts returns n ports that are free and that no cluster has. Whoever calls it holds portsMu until they are written
// down.
func (p *Provider) choosePorts(n int) ([]int, error) {
	taken, err := p.knownPorts()
	if err != nil {
		return nil, err
	}
	var chosen []int
	for range 1000 {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		if taken[port] || !free(port) {
			continue
		}
		taken[port] = true
		if chosen = append(chosen, port); len(chosen) == n {
			return chosen, nil
		}
	}
	return nil, fmt.Errorf("no port from %d to %d is free on 127.0.0.1", firstPort, lastPort)
}

// knownPorts are those of the clusters and of etcd, whether they run or not.
func (p *Provider) knownPorts() (map[int]bool, error) {
	uids, err := p.uids()
	if err != nil {
		return nil, err
	}
	known := map[int]bool{}
	for _, uid := range uids {
		if r, err := p.cluster(uid).read(); err == nil { // a cluster without a readable record has no port
			known[r.Port] = true
		}
	}
	var e etcdRecord
	if err := readJSON(p.etcdFile("etcd.json"), &e); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	known[e.ClientPort], known[e.PeerPort] = true, true
	return known, nil
}

func readJSON(file string, into any) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s is damaged: %w", file, err)
	}
	return nil
}

func writeJSON(file string, from any) error {
	data, err := json.MarshalIndent(from, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(file, append(data, '\n'))
}
