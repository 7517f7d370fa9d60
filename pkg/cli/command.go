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
	return NewCommandWithFactory(&kit.Factory{IOStreams: streams, ConfigFlags: genericclioptions.NewConfigFlags(true), Version: version})
}

// NewCommandWithFactory returns the command for a factory, which it completes with the flags of the command line.
func NewCommandWithFactory(g *kit.Factory) *cobra.Command {
	// kubectl's --cluster is a cluster of the kubeconfig, and clusteradm's is a managed cluster. Only the latter is supported here.
	g.ConfigFlags.ClusterName = nil
	g.ConfigFlags.Namespace = nil
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
	cmd.SetIn(g.In)
	cmd.SetOut(g.Out)
	cmd.SetErr(g.ErrOut)
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath())
	})
	g.AddFlags(cmd)
	cmd.AddCommand(install.NewInitCommand(g), join.NewCommand(g), clusters.NewAcceptCommand(g), join.NewUnjoinCommand(g), newGetCommand(g),
		clusters.NewLabelCommand(g), sets.NewMembersCommand(g), install.NewIAMRoleCommand(g), access.NewCommand(g), access.NewTokenCommand(g),
		newVersionCommand(g), ui.NewCommand(g), clusters.NewDenyCommand(g), install.NewCleanCommand(g), newAgentCommand(g),
		kit.NewGroup("edge", "Move edge nodes and services to a hub", edge.NewImportCommand(g)),
		kit.NewGroup("explain", "Show why a placement chooses what it chooses", placements.NewExplainCommand(g)),
		kit.NewGroup("create", "Create a set of clusters, a placement or a work", sets.NewCreateCommand(g), placements.NewCreateCommand(g), works.NewCreateCommand(g)),
		works.NewCommand(g), works.NewRolloutCommand(g), edge.NewDeployCheckCommand(g),
		why.NewCommand(g), inspect.NewDoctorCommand(g), inspect.NewTreeCommand(g), inspect.NewTopCommand(g),
		kit.NewGroup("delete", "Delete a set or a work, or remove a cluster from the hub", clusters.NewDeleteCommand(g), sets.NewDeleteCommand(g), works.NewDeleteCommand(g)))
	cmd.AddCommand(sets.NewBindCommands(g)...)
	cmd.AddCommand(sets.NewGrantCommands(g)...)
	upstreams := kit.NewGroup("clusterset", "Same as bind and unbind", sets.NewBindCommands(g)...)
	upstreams.Hidden = true // for users who know clusteradm
	cmd.AddCommand(upstreams)
	return cmd
}

func newGetCommand(g *kit.Factory) *cobra.Command {
	return kit.NewGroup("get", "Show the clusters, sets, placements or works of a hub, or the agents of a management cluster, or get a token for clusters to join",
		clusters.NewGetCommand(g), sets.NewGetCommand(g), placements.NewGetCommand(g), works.NewGetCommand(g), join.NewGetKlusterletsCommand(g), install.NewGetTokenCommand(g))
}

func newAgentCommand(g *kit.Factory) *cobra.Command {
	return kit.NewGroup("agent", "Install or uninstall an edge agent in a cluster, or in one namespace of it; upgrade the agents of many clusters",
		join.NewAgentInstallCommand(g), join.NewAgentUninstallCommand(g), works.NewAgentUpgradeCommand(g))
}

func newVersionCommand(g *kit.Factory) *cobra.Command {
	out := kit.NewFormat("text", "json")
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return out.Print(g.Out, map[string]string{"version": g.Version}, "kubectl-hub %s\n", g.Version)
		},
	}
	out.AddTo(cmd)
	return cmd
}
