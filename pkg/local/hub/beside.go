// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"crypto/x509/pkix"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned"
	"github.com/clusterhub/clusterhub/pkg/local/image"
	"github.com/clusterhub/clusterhub/pkg/local/pods"
)

// Cluster returns the configuration of a plain cluster beside the hub. Its directory is in that of the hub, and has its name.
func (c Options) Cluster(name string) Options {
	return Options{Dir: filepath.Join(c.Dir, name), BinDir: c.BinDir, ImagesDir: c.ImagesDir, Detach: c.Detach, UnsafeNoFsync: c.UnsafeNoFsync, Plain: true}
}

// Clusters returns the plain clusters beside the hub, by name, whether they run or not.
func (h *Instance) Clusters() (clusters []*Instance, err error) {
	entries, err := os.ReadDir(h.config.Dir)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if !entry.IsDir() || !exists(h.path(entry.Name(), runDir)) {
			continue
		}
		c, err := Open(h.config.Cluster(entry.Name()))
		if err != nil {
			return nil, err
		}
		clusters = append(clusters, c)
	}
	return clusters, nil
}

// startClusters starts those of Options.Clusters.
func (h *Instance) startClusters(ctx context.Context) error {
	for i := range h.config.Clusters {
		name := clusterName(i)
		h.config.Log("Starting a cluster beside the hub, %s", name)
		c, err := Start(ctx, h.config.Cluster(name))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		h.clusters = append(h.clusters, c)
	}
	return nil
}

// NodeCommand is the command of localhub that runs the node.
const NodeCommand = "node"

// StartNode gives the cluster a node, which runs pods of hub-operator and of agents that serve other clusters; see package node. It waits until the
// node is ready.
func (h *Instance) StartNode(ctx context.Context) error {
	// It combines a kubelet, a scheduler and the requesters of tokens for pods.
	kubeconfig, err := h.actAsUser(procNode, pkix.Name{CommonName: "system:node:" + pods.Name, Organization: []string{"system:masters"}})
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(h.AdminConfig())
	if err != nil {
		return err
	}
	args := []string{NodeCommand, "--kubeconfig=" + kubeconfig, "--dir=" + h.config.Dir, "--bin-dir=" + h.config.BinDir,
		"--images=" + h.config.ImagesDir}
	return h.run(ctx, procNode, image.Binary, args, nil, func(ctx context.Context) bool {
		has, err := client.CoreV1().Nodes().Get(ctx, pods.Name, metav1.GetOptions{})
		if err != nil {
			return false
		}
		for _, c := range has.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				return true
			}
		}
		return false
	})
}

// ProviderNamespace has the ServiceAccount of a cluster provider, cluster-provider-NAME.
const ProviderNamespace = "openmcp-system"

// StartLocalProvider starts a provider of clusters that are processes on this machine, with a ServiceAccount of its own, and waits until its profile
// ENVIRONMENT.NAME.default exists. The clusters' processes end together with it.
func (h *Instance) StartLocalProvider(ctx context.Context, environment, name string, args ...string) error {
	kubeconfig, err := h.actAs(procProvider, ProviderNamespace, procProvider+"-"+name)
	if err != nil {
		return err
	}
	args = append([]string{"local", "run", "--environment=" + environment, "--provider-name=" + name, "--kubeconfig=" + kubeconfig,
		"--dir=" + h.path(procProvider), "--bin-dir=" + h.config.BinDir, "--end-with-provider"}, args...)
	if h.config.UnsafeNoFsync {
		args = append(args, "--unsafe-no-fsync")
	}
	client, err := versioned.NewForConfig(h.AdminConfig())
	if err != nil {
		return err
	}
	profile := fmt.Sprintf("%s.%s.default", environment, name)
	return h.run(ctx, procProvider, procProvider, args, nil, func(ctx context.Context) bool {
		_, err := client.OpenMCPV1alpha1().ClusterProfiles().Get(ctx, profile, metav1.GetOptions{})
		return err == nil
	})
}

// StopLocalProvider stops the provider gracefully, and its clusters with it.
func (h *Instance) StopLocalProvider() { h.stop(procProvider) }
