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
	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// managedName is a plain cluster that has joined the hub by certificate. The other ManagedClusters of the example have no cluster.
const managedName = "berlin-1"

// startManaged starts the managed cluster and its agent. The first time it joins the hub, by the commands that users type. Later it preserves the
// changes of users.
func startManaged(ctx context.Context, hub *localhub.Instance, config localhub.Options) error {
	printLine("Starting managed cluster %s", managedName)
	managed, err := localhub.Start(ctx, config.Cluster(managedName))
	if err != nil {
		return fmt.Errorf("%s: %w", managedName, err)
	}
	joined := filepath.Join(managed.Dir(), "joined")
	if _, err := os.Stat(joined); err == nil {
		return startAgent(ctx, managed)
	}
	printLine("Joining %s to the hub", managedName)
	way, err := prepareJoin(ctx, hub)
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

// startAgent starts the agent of the managed cluster, with the flags for works that join has set in the Deployment, which no kubelet runs.
func startAgent(ctx context.Context, managed *localhub.Instance) error {
	return managed.StartHubAgent(ctx, "--cluster-name="+managedName, deploy.WorksFlag, deploy.AgentIDFlag+deploy.AgentID(registration.AgentNamespace))
}

// joinInfo has what a cluster needs to join the hub.
type joinInfo struct {
	Token  string `json:"hub-token"`
	Server string `json:"hub-apiserver"`
	CA     string `json:"ca-data"`
}

// prepareJoin prepares the hub for clusters to join, and returns what a cluster needs for that.
func prepareJoin(ctx context.Context, hub *localhub.Instance) (joinInfo, error) {
	var w joinInfo
	printed, err := kubectlHub(ctx, hub, "init", "--wait", "--output=json")
	if err != nil {
		return w, err
	}
	if err := json.Unmarshal(printed, &w); err != nil {
		return w, fmt.Errorf("kubectl hub init did not print JSON: %w", err)
	}
	return w, nil
}

// flags returns the flags of kubectl hub join.
func (w joinInfo) flags() []string {
	return []string{"--hub-token", w.Token, "--hub-apiserver", w.Server, "--ca-data", w.CA}
}

// kubectlHub runs the plugin as an admin, and returns its output.
func kubectlHub(ctx context.Context, of *localhub.Instance, args ...string) ([]byte, error) {
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
func open(config localhub.Options) (*localhub.Instance, []localhub.ProcessStatus, error) {
	if _, err := os.Stat(config.Dir); errors.Is(err, os.ErrNotExist) {
		return nil, nil, nil
	}
	// `clean` must not delete a directory that is not a hub's.
	if _, err := os.Stat(filepath.Join(config.Dir, localhub.LockFile)); errors.Is(err, os.ErrNotExist) {
		return nil, nil, fmt.Errorf("%s has no hub", config.Dir)
	}
	hub, err := localhub.Open(config)
	if err != nil {
		return nil, nil, err
	}
	all, err := hub.Status(time.Now())
	return hub, all, err
}
