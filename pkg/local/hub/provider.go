// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned"
)

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
