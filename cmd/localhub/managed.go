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

	"github.com/clusterhub/clusterhub/pkg/localhub"
)

// managedName is the cluster that runs beside the hub, and has joined it by certificate. The others of the example are
// names.
const managedName = "berlin-1"

// managedConfig is the cluster's, which is kept in the hub's directory.
func managedConfig(hub localhub.Config) localhub.Config {
	hub.Dir, hub.Plain = filepath.Join(hub.Dir, managedName), true
	return hub
}

// startManaged starts the managed cluster and its agent. The first time it joins the hub, by the commands that people
// type: what a user has made of it since stays.
func startManaged(ctx context.Context, hub *localhub.Hub, config localhub.Config) (*localhub.Hub, error) {
	say("Starting a cluster to be managed, %s", managedName)
	config = managedConfig(config)
	config.Log = nil
	managed, err := localhub.Start(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", managedName, err)
	}
	plugin := filepath.Join(filepath.Dir(hub.Kubectl(ctx).Path), "kubectl-hub")
	joined := filepath.Join(managed.Dir(), "joined")
	if _, err := os.Stat(joined); err == nil {
		return managed, managed.StartHubAgent(ctx, "--cluster-name="+managedName)
	}
	say("Joining %s to the hub", managedName)
	printed, err := kubectlHub(ctx, plugin, hub, "init", "--wait", "--output=json")
	if err != nil {
		return nil, err
	}
	var way struct {
		Token  string `json:"hub-token"`
		Server string `json:"hub-apiserver"`
		CA     string `json:"ca-data"`
	}
	if err := json.Unmarshal(printed, &way); err != nil {
		return nil, fmt.Errorf("kubectl hub init printed something else than JSON: %w", err)
	}
	if _, err := kubectlHub(ctx, plugin, managed, "join", "--cluster-name", managedName, "--hub-token", way.Token,
		"--hub-apiserver", way.Server, "--ca-data", way.CA); err != nil {
		return nil, err
	}
	// There is no kubelet that would run the Deployment.
	if err := managed.StartHubAgent(ctx, "--cluster-name="+managedName); err != nil {
		return nil, err
	}
	if _, err := kubectlHub(ctx, plugin, hub, "accept", "--clusters", managedName, "--wait"); err != nil {
		return nil, err
	}
	return managed, os.WriteFile(joined, nil, 0o600)
}

// kubectlHub runs the plugin as an admin, and returns what it prints.
func kubectlHub(ctx context.Context, plugin string, of *localhub.Hub, args ...string) ([]byte, error) {
	var complaints bytes.Buffer
	cmd := exec.CommandContext(ctx, plugin, append(args, "--kubeconfig", of.AdminKubeconfig(), "--cache-dir", filepath.Join(of.Dir(), "kubectl-cache"))...)
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("kubectl hub %s: %w: %s", args[0], err, strings.TrimSpace(complaints.String()))
	}
	return out, nil
}

// hubs are the hub in the directory and its managed cluster, as far as they are there, in the order in which they are
// stopped.
func hubs(config localhub.Config) (found []*localhub.Hub, err error) {
	for _, c := range []localhub.Config{managedConfig(config), config} {
		hub, err := open(c)
		if err != nil {
			return nil, err
		}
		if hub != nil {
			found = append(found, hub)
		}
	}
	return found, nil
}

// open returns the hub in the directory. When there is none it returns nil, and makes none.
func open(config localhub.Config) (*localhub.Hub, error) {
	if _, err := os.Stat(config.Dir); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	// Whatever else the directory may be, `clean` must not remove it.
	if _, err := os.Stat(filepath.Join(config.Dir, localhub.LockFile)); errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s holds no hub", config.Dir)
	}
	return localhub.Open(config)
}
