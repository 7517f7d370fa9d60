// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"github.com/spf13/cobra"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/logs"

	"github.com/clusterhub/clusterhub/pkg/agent/identity/awsirsa"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/logging"
)

// NewCommand returns the command hub-agent. It runs until its context ends.
func NewCommand() *cobra.Command {
	o := NewOptions()
	cmd := &cobra.Command{
		Use:   "hub-agent",
		Short: "Register a cluster with a hub, and report its status to the hub",
		Long: "hub-agent runs in a managed cluster. It registers the cluster with the hub by a bootstrap kubeconfig, " +
			"gets the cluster's own identity once the hub has accepted it, and keeps its lease and its status up to date.",
		SilenceUsage: true,
		Args:         cobra.NoArgs,
		// Subcommands use it, too.
		PersistentPreRunE: func(*cobra.Command, []string) error {
			logs.InitLogs()
			return logging.Apply(o.Logs, o.FeatureGate)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Validate(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	flags := o.Flags()
	cmd.PersistentFlags().AddFlagSet(flags.FlagSet(logFlags))
	command.AddFlags(cmd, flags)
	for _, sub := range []*cobra.Command{newUnjoinCommand(), awsirsa.NewTokenCommand()} {
		own := cliflag.NamedFlagSets{}
		own.FlagSet(sub.Name()).AddFlagSet(sub.Flags())
		command.AddFlags(sub, own)
		cmd.AddCommand(sub)
	}
	return cmd
}
