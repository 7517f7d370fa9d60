// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/pkg/local/pods"
)

// detachedName is a cluster that runs no pods: its agent runs on the hub, as processes of this machine.
const detachedName = "madrid-1"

// hasDetached reports whether the hub has that cluster, from an earlier start.
func hasDetached(config localhub.Options) bool {
	_, err := os.Stat(filepath.Join(config.Dir, detachedName))
	return !errors.Is(err, fs.ErrNotExist)
}

// startDetached starts the cluster, and the node that runs its agent. The first time it joins the hub, by the commands that users type. Later it
// preserves the changes of users.
func startDetached(ctx context.Context, hub *localhub.Instance, config localhub.Options) error {
	printLine("Starting cluster %s, which runs no pods, and a node of the hub for its agent", detachedName)
	detached, err := localhub.Start(ctx, config.Cluster(detachedName))
	if err != nil {
		return fmt.Errorf("%s: %w", detachedName, err)
	}
	if err := hub.StartNode(ctx); err != nil {
		return err
	}
	joined := filepath.Join(detached.Dir(), "joined")
	if _, err := os.Stat(joined); err == nil {
		return nil
	}
	printLine("Joining %s to the hub: hub-operator runs its agent, on the hub", detachedName)
	way, err := prepareJoin(ctx, hub)
	if err != nil {
		return err
	}
	// The image has no version: hub-operator is the local binary.
	if _, err := kubectlHub(ctx, hub, append([]string{"join", "--mode=detached", "--managed-kubeconfig", detached.AdminKubeconfig(), "--works=admin",
		"--operator-image=clusterhub/hub-operator:local", "--cluster-name", detachedName}, way.flags()...)...); err != nil {
		return err
	}
	if _, err := kubectlHub(ctx, hub, "accept", "--clusters", detachedName, "--wait"); err != nil {
		return err
	}
	if err := kubectl(ctx, hub, "wait", "klusterlet/"+detachedName, "--for=condition=Available", "--timeout=3m"); err != nil {
		return err
	}
	return os.WriteFile(joined, nil, 0o600)
}

// newNodeCommand returns the command of a node's process, which startDetached starts.
func newNodeCommand(config *localhub.Options) *cobra.Command {
	kubeconfig := ""
	cmd := &cobra.Command{
		Use: localhub.NodeCommand, Short: "Run pods of hub-operator and of agents as processes", Args: cobra.NoArgs, Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			way, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
			if err != nil {
				return err
			}
			way.QPS = -1
			return pods.Run(cmd.Context(), pods.Options{Cluster: way, BinDir: config.BinDir, ImagesDir: config.ImagesDir, Dir: filepath.Join(config.Dir, "pods"),
				LogDir: filepath.Join(config.Dir, "logs", "pods"), Log: printTimed})
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "The path to the kubeconfig of the hub.")
	return cmd
}
