// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package localhub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/clusterhub/clusterhub/pkg/localserver"
)

// ports are the ports of the processes, by name. They stay the same from one start to the next, so that a kubeconfig
// that was copied stays good.
type ports map[string]int

// A process with several ports has them under its name and one of these.
const (
	portSeparator = "/"
	peerPort      = portSeparator + "peer"
	healthPort    = portSeparator + "health"
	metricsPort   = portSeparator + "metrics"
)

// portNames are all that the hub may listen on.
func portNames(replicas int) []string {
	names := []string{procEtcd, procEtcd + peerPort, procFront, procKCM, procHubEtcd, procHubEtcd + peerPort,
		procHubController + healthPort, procHubController + metricsPort, procHubApprover + healthPort, procHubApprover + metricsPort,
		procHubAgent + healthPort, procAuthenticator}
	for i := range replicas {
		names = append(names, replicaName(i))
	}
	return names
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
		return nil, fmt.Errorf("%s is damaged, delete it and start again: %w", file, err)
	}
	return p, nil
}

// portGrace is how long a port may be taken at first: a process that was killed holds its port until all of it is gone.
const portGrace = 5 * time.Second

// choose adds the ports that are missing and checks that those of processes that do not run are free.
func (p ports) choose(ctx context.Context, file string, replicas int, running func(name string) bool) error {
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
			return fmt.Errorf("port %d of %s is taken by another process: end that process, or delete %s to let the hub choose other ports", port, name, file)
		}
		held = append(held, l)
	}
	for _, name := range portNames(replicas) {
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

// listen listens on a port as soon as that is free.
func listen(ctx context.Context, port int) (l net.Listener, err error) {
	_ = wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(context.Context) (bool, error) {
		l, err = net.Listen("tcp", localserver.Address(port))
		return err == nil, nil
	})
	return l, err
}
