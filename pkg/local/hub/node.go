// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"crypto/x509/pkix"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/clusterhub/clusterhub/pkg/local/image"
	"github.com/clusterhub/clusterhub/pkg/local/pods"
)

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
