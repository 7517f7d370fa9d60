// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/logs"

	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/logging"
)

// NewCommand returns the command hub-apiserver, which runs until the context ends.
func NewCommand() *cobra.Command {
	o := NewOptions()
	cmd := &cobra.Command{
		Use:   "hub-apiserver",
		Short: "Serve the clusters of a hub, their sets, and access to them",
		Long: "hub-apiserver is an aggregated API server: it serves cluster.open-cluster-management.io, " +
			"clusterview.open-cluster-management.io, clusters.openmcp.cloud and view.clusterhub.dev behind the hub's kube-apiserver. Without --etcd-servers it runs its own etcd in --data-dir.",
		SilenceUsage: true,
		Args:         cobra.NoArgs,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			return o.ServerRun.ComponentGlobalsRegistry.Set()
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			logs.InitLogs()
			if err := logging.Apply(o.Logs, utilfeature.DefaultFeatureGate); err != nil {
				return err
			}
			if err := o.Validate(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	command.AddFlags(cmd, o.Flags())
	return cmd
}

func inCluster() bool {
	return os.Getenv("KUBERNETES_SERVICE_HOST") != ""
}

// explain returns an error at startup in one clear line.
func explain(what string, err error) error {
	return fmt.Errorf("hub-apiserver cannot start: %s: %w", what, err)
}
