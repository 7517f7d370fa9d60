// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	localserver "github.com/clusterhub/clusterhub/pkg/local/server"
)

// ports are the ports of the processes, by name. They do not change between starts, so that a copied kubeconfig stays valid.
type ports map[string]int

// Suffixes of the names of further ports of a process.
const (
	portSeparator = "/"
	peerPort      = portSeparator + "peer"
	healthPort    = portSeparator + "health"
	metricsPort   = portSeparator + "metrics"
)

// portsFile returns the file with the ports.
func (c Options) portsFile() string { return filepath.Join(c.Dir, "ports.json") }

// portNames returns the names of all ports that the hub may listen on.
func (c Options) portNames() []string {
	names := []string{procKCM, procHubController + healthPort, procHubController + metricsPort,
		procHubApprover + healthPort, procHubApprover + metricsPort, procAuthenticator}
	for i := range max(c.HubAgents, 1) {
		names = append(names, memberName(procHubAgent, i)+healthPort)
	}
	for i := range c.FrontReplicas {
		names = append(names, memberName(procFront, i))
	}
	for i := range c.Replicas {
		names = append(names, memberName(procHubAPIServer, i))
	}
	for i := range c.EtcdMembers {
		for _, etcd := range []string{procEtcd, procHubEtcd} {
			names = append(names, memberName(etcd, i), memberName(etcd, i)+peerPort)
		}
	}
	return names
}

// members returns the number of processes of a kind that have ports.
func (p ports) members(kind string) (n int) {
	for p[memberName(kind, n)] != 0 {
		n++
	}
	return n
}

func readPorts(file string) (ports, error) {
	p := ports{}
	data, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, fmt.Errorf("%s is invalid, delete it and retry: %w", file, err)
	}
	return p, nil
}

// portGrace is the maximum time that a port may be in use at first: a process that was killed holds its port until all of it is gone.
const portGrace = 5 * time.Second

// choose adds missing ports, removes those without one of the names, and checks that those of processes that do not run are free.
func (p ports) choose(ctx context.Context, file string, names []string, running func(name string) bool) error {
	maps.DeleteFunc(p, func(name string, _ int) bool { return !slices.Contains(names, name) })
	var held []net.Listener
	defer func() {
		for _, l := range held {
			_ = l.Close()
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, portGrace)
	defer cancel()
	for name, port := range p {
		process, _, _ := strings.Cut(name, portSeparator)
		if running(process) {
			continue
		}
		l, err := listen(ctx, port)
		if err != nil {
			advice := fmt.Sprintf("stop that process, or delete %s to choose other ports", file)
			if p.members(procEtcd) > 1 {
				advice = "stop that process; the ports of members of etcd cannot change"
			}
			return fmt.Errorf("port %d of %s is in use by another process: %s", port, name, advice)
		}
		held = append(held, l)
	}
	for _, name := range names {
		if p[name] != 0 {
			continue
		}
		l, port, err := localserver.Listen()
		if err != nil {
			return err
		}
		held = append(held, l)
		p[name] = port
	}
	data, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o600)
}

// listen listens on a port as soon as it is free.
func listen(ctx context.Context, port int) (l net.Listener, err error) {
	_ = wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(context.Context) (bool, error) {
		l, err = net.Listen("tcp", localserver.Address(port))
		return err == nil, nil
	})
	return l, err
}
