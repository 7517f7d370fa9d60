// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli is the kubectl plugin "kubectl hub". Its commands and flags are those of Open Cluster Management's clusteradm where that has an
// equivalent.
//
// Results go to stdout, everything else to stderr. A command that fails prints why in one line.
package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/clusterhub/clusterhub/pkg/cli/access"
	"github.com/clusterhub/clusterhub/pkg/cli/clusters"
	"github.com/clusterhub/clusterhub/pkg/cli/edge"
	"github.com/clusterhub/clusterhub/pkg/cli/inspect"
	"github.com/clusterhub/clusterhub/pkg/cli/install"
	"github.com/clusterhub/clusterhub/pkg/cli/join"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/cli/placements"
	"github.com/clusterhub/clusterhub/pkg/cli/sets"
	"github.com/clusterhub/clusterhub/pkg/cli/ui"
	"github.com/clusterhub/clusterhub/pkg/cli/why"
	"github.com/clusterhub/clusterhub/pkg/cli/works"
)

// CompletionName is the prefix of the name of the program that kubectl runs for completions of "kubectl hub": a link to this one.
const CompletionName = "kubectl_complete-hub"

// UnknownVersion is the version of a program that was built without one.
const UnknownVersion = kit.UnknownVersion

// NewCommand returns the command. The version is the version of the binary.
func NewCommand(streams genericiooptions.IOStreams, version string) *cobra.Command {
	return NewCommandWithOptions(&kit.Options{IOStreams: streams, ConfigFlags: genericclioptions.NewConfigFlags(true), Version: version})
}

// NewCommandWithOptions returns the command for options, to which it adds the flags of all commands.
func NewCommandWithOptions(opts *kit.Options) *cobra.Command {
	// kubectl's --cluster is a cluster of the kubeconfig, and clusteradm's is a managed cluster. Only the latter is supported here.
	opts.ConfigFlags.ClusterName = nil
	opts.ConfigFlags.Namespace = nil
	cmd := &cobra.Command{
		Use:   "hub",
		Short: "Set up a hub, and let clusters join and leave it",
		Long: "kubectl hub prepares a hub for clusters to join it, lets clusters join and leave, and shows them.\n\n" +
			"The kubeconfig and --context select the cluster of a command: join, unjoin and agent need the managed " +
			"cluster, all others the hub.",
		Example: kit.Example(`
# On the hub: prepare it, and print what to run on the clusters
kubectl hub init --context hub
# On a cluster: join
kubectl hub join --context c1 --hub-token … --hub-apiserver https://hub.example.com --ca-data … --cluster-name c1
# On the hub: accept it
kubectl hub accept --clusters c1 --wait --context hub`),
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl hub"},
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.SetIn(opts.In)
	cmd.SetOut(opts.Out)
	cmd.SetErr(opts.ErrOut)
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath())
	})
	opts.AddFlags(cmd)
	cmd.AddCommand(install.NewInitCommand(opts), join.NewCommand(opts), clusters.NewAcceptCommand(opts), join.NewUnjoinCommand(opts), newGetCommand(opts),
		clusters.NewLabelCommand(opts), sets.NewMembersCommand(opts), install.NewIAMRoleCommand(opts), access.NewCommand(opts), access.NewTokenCommand(opts),
		newVersionCommand(opts), ui.NewCommand(opts), clusters.NewDenyCommand(opts), install.NewCleanCommand(opts), newAgentCommand(opts),
		kit.NewGroup("edge", "Move edge nodes and services to a hub", edge.NewImportCommand(opts)),
		kit.NewGroup("explain", "Show why a placement chooses what it chooses", placements.NewExplainCommand(opts)),
		kit.NewGroup("create", "Create a set of clusters, a placement or a work", sets.NewCreateCommand(opts), placements.NewCreateCommand(opts), works.NewCreateCommand(opts)),
		works.NewCommand(opts), works.NewRolloutCommand(opts), edge.NewDeployCheckCommand(opts),
		why.NewCommand(opts), inspect.NewDoctorCommand(opts), inspect.NewTreeCommand(opts), inspect.NewTopCommand(opts),
		kit.NewGroup("delete", "Delete a set or a work, or remove a cluster from the hub", clusters.NewDeleteCommand(opts), sets.NewDeleteCommand(opts), works.NewDeleteCommand(opts)))
	cmd.AddCommand(sets.NewBindCommands(opts)...)
	cmd.AddCommand(sets.NewGrantCommands(opts)...)
	upstreams := kit.NewGroup("clusterset", "Same as bind and unbind", sets.NewBindCommands(opts)...)
	upstreams.Hidden = true // for users who know clusteradm
	cmd.AddCommand(upstreams)
	return cmd
}

func newGetCommand(opts *kit.Options) *cobra.Command {
	return kit.NewGroup("get", "Show the clusters, sets, placements or works of a hub, or the agents of a management cluster, or get a token for clusters to join",
		clusters.NewGetCommand(opts), sets.NewGetCommand(opts), placements.NewGetCommand(opts), works.NewGetCommand(opts), join.NewGetKlusterletsCommand(opts), install.NewGetTokenCommand(opts))
}

func newAgentCommand(opts *kit.Options) *cobra.Command {
	return kit.NewGroup("agent", "Install or uninstall an edge agent in a cluster, or in one namespace of it; upgrade the agents of many clusters",
		join.NewAgentInstallCommand(opts), join.NewAgentUninstallCommand(opts), works.NewAgentUpgradeCommand(opts))
}

func newVersionCommand(opts *kit.Options) *cobra.Command {
	out := kit.NewFormat("text", "json")
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return out.Print(opts.Out, map[string]string{"version": opts.Version}, "kubectl-hub %s\n", opts.Version)
		},
	}
	out.AddTo(cmd)
	return cmd
}
