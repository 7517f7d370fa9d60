// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"

	localserver "github.com/clusterhub/clusterhub/pkg/local/server"
)

func free(port int) bool {
	l, err := net.Listen("tcp", localserver.Address(port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// choosePorts returns n ports that are free and that no cluster has. Its caller holds portsMu until they are recorded.
func (p *Provider) choosePorts(n int) ([]int, error) {
	taken, err := p.knownPorts()
	if err != nil {
		return nil, err
	}
	var chosen []int
	for len(chosen) < n {
		l, port, err := localserver.Listen()
		if err != nil {
			return nil, err
		}
		if err := l.Close(); err != nil {
			return nil, err
		}
		if !taken[port] {
			taken[port] = true
			chosen = append(chosen, port)
		}
	}
	return chosen, nil
}

// knownPorts returns the ports of the clusters and of etcd, whether they run or not.
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
	return localserver.WriteFile(file, append(data, '\n'))
}
