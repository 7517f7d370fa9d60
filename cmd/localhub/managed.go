// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/localhub"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// managedName is the cluster that runs beside the hub, and has joined it by certificate. The others of the example are
// names.
const managedName = "berlin-1"

// startManaged starts the managed cluster and its agent. The first time it joins the hub, by the commands that people
// type: what a user has made of it since stays.
func startManaged(ctx context.Context, hub *localhub.Hub, config localhub.Config) error {
	say("Starting a cluster to be managed, %s", managedName)
	managed, err := localhub.Start(ctx, config.Cluster(managedName))
	if err != nil {
		return fmt.Errorf("%s: %w", managedName, err)
	}
	joined := filepath.Join(managed.Dir(), "joined")
	if _, err := os.Stat(joined); err == nil {
		return startAgent(ctx, managed)
	}
	say("Joining %s to the hub", managedName)
	way, err := wayTo(ctx, hub)
	if err != nil {
		return err
	}
	if _, err := kubectlHub(ctx, managed, append([]string{"join", "--cluster-name", managedName, "--works=admin"}, way.flags()...)...); err != nil {
		return err
	}
	if err := startAgent(ctx, managed); err != nil {
		return err
	}
	if _, err := kubectlHub(ctx, hub, "accept", "--clusters", managedName, "--wait"); err != nil {
		return err
	}
	return os.WriteFile(joined, nil, 0o600)
}

// startAgent starts the agent of the managed cluster, with the flags for works that join has given to the Deployment: there is no
// kubelet that would run that.
func startAgent(ctx context.Context, managed *localhub.Hub) error {
	return managed.StartHubAgent(ctx, "--cluster-name="+managedName, deploy.WorksFlag, deploy.AgentIDFlag+deploy.AgentID(registration.AgentNamespace))
}

// way is what a cluster needs to join the hub.
type way struct {
	Token  string `json:"hub-token"`
	Server string `json:"hub-apiserver"`
	CA     string `json:"ca-data"`
}

// wayTo prepares the hub for clusters to join, and is the way of one.
func wayTo(ctx context.Context, hub *localhub.Hub) (way, error) {
	var w way
	printed, err := kubectlHub(ctx, hub, "init", "--wait", "--output=json")
	if err != nil {
		return w, err
	}
	if err := json.Unmarshal(printed, &w); err != nil {
		return w, fmt.Errorf("kubectl hub init printed something else than JSON: %w", err)
	}
	return w, nil
}

// flags are those of kubectl hub join.
func (w way) flags() []string {
	return []string{"--hub-token", w.Token, "--hub-apiserver", w.Server, "--ca-data", w.CA}
}

// kubectlHub runs the plugin as an admin, and returns what it prints.
func kubectlHub(ctx context.Context, of *localhub.Hub, args ...string) ([]byte, error) {
	var complaints bytes.Buffer
	plugin := filepath.Join(filepath.Dir(of.Kubectl(ctx).Path), "kubectl-hub")
	cmd := exec.CommandContext(ctx, plugin, append(args, "--kubeconfig", of.AdminKubeconfig(), "--cache-dir", filepath.Join(of.Dir(), "kubectl-cache"))...)
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("kubectl hub %s: %w: %s", args[0], err, strings.TrimSpace(complaints.String()))
	}
	return out, nil
}

// open returns the hub in the directory and the status of its processes. It returns nil if the directory does not exist, and does not create it.
func open(config localhub.Config) (*localhub.Hub, []localhub.Status, error) {
	if _, err := os.Stat(config.Dir); errors.Is(err, os.ErrNotExist) {
		return nil, nil, nil
	}
	// Whatever else the directory may be, `clean` must not remove it.
	if _, err := os.Stat(filepath.Join(config.Dir, localhub.LockFile)); errors.Is(err, os.ErrNotExist) {
		return nil, nil, fmt.Errorf("%s holds no hub", config.Dir)
	}
	hub, err := localhub.Open(config)
	if err != nil {
		return nil, nil, err
	}
	all, err := hub.Status(time.Now())
	return hub, all, err
}
