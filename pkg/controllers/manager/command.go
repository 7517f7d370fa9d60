// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"github.com/spf13/cobra"
	"k8s.io/component-base/logs"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/logging"
)

// NewCommand returns the command hub-controller-manager, which runs until the context ends.
func NewCommand() *cobra.Command {
	o := NewOptions()
	cmd := &cobra.Command{
		Use:   "hub-controller-manager",
		Short: "Run the controllers of a hub",
		Long: "hub-controller-manager maintains the sets \"default\" and \"global\", writes the status of cluster sets and of " +
			"their bindings, chooses clusters for placements, writes the works of replica sets, grants accepted clusters their identity and rights on the hub, and prepares requests for " +
			"clusters and for access to them. Several may run: " +
			"one is the leader, and the others stand by.",
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
