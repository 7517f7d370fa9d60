// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"github.com/spf13/cobra"
	"k8s.io/component-base/logs"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/logging"
)

// NewCommand returns the command hub-operator, which runs until the context ends.
func NewCommand() *cobra.Command {
	o := NewOptions()
	cmd := &cobra.Command{
		Use:   "hub-operator",
		Short: "Install hubs and agents",
		Long: "hub-operator installs agents for Klusterlets: their pods on the cluster that it runs on, and what they need on the cluster " +
			"that they serve, which can be another one. Several replicas may run: one is active, the others stand by.",
		SilenceUsage: true,
		Args:         cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logs.InitLogs()
			if err := logging.Apply(o.Logs, o.FeatureGate); err != nil {
				return err
			}
			ctrl.SetLogger(klog.Background())
			if err := o.Validate(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	command.AddFlags(cmd, o.Flags())
	return cmd
}
