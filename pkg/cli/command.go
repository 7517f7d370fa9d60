// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli is the kubectl plugin "kubectl hub". Its commands and flags are those of Open Cluster Management's clusteradm where that has an
// equivalent.
//
// Results go to stdout, everything else to stderr. A command that fails prints why in one line.
package cli

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/clusterhub/clusterhub/pkg/logging"
)

// CompletionName is the prefix of the name of the program that kubectl runs for completions of "kubectl hub": a link to this one.
const CompletionName = "kubectl_complete-hub"

// UnknownVersion is the version of a program that was built without one.
const UnknownVersion = "unknown"

// global has the state that all commands share.
type global struct {
	genericiooptions.IOStreams
	flags   *genericclioptions.ConfigFlags
	version string
	// poll is the interval of a wait, or 0 for pollInterval. trial is the time that a hub may take to issue a certificate, or 0 for trialFor.
	poll, trial time.Duration
}

// NewCommand returns the command. The version is the version of the binary.
func NewCommand(streams genericiooptions.IOStreams, version string) *cobra.Command {
	return newCommand(&global{IOStreams: streams, flags: genericclioptions.NewConfigFlags(true), version: version})
}

func newCommand(g *global) *cobra.Command {
	// kubectl's --cluster is a cluster of the kubeconfig, and clusteradm's is a managed cluster. Only the latter is supported here.
	g.flags.ClusterName = nil
	g.flags.Namespace = nil
	cmd := &cobra.Command{
		Use:   "hub",
		Short: "Set up a hub, and let clusters join and leave it",
		Long: "kubectl hub prepares a hub for clusters to join it, lets clusters join and leave, and shows them.\n\n" +
			"The kubeconfig and --context select the cluster of a command: join, unjoin and agent need the managed " +
			"cluster, all others the hub.",
		Example: example(`
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
	g.addGlobalFlags(cmd)
	cmd.AddCommand(newInitCommand(g), newJoinCommand(g), newAcceptCommand(g), newUnjoinCommand(g), newGetCommand(g),
		newLabelCommand(g), newMembersCommand(g), newIAMRoleCommand(g), newAccessCommand(g), newAccessTokenCommand(g),
		newVersionCommand(g), newUICommand(g), newDenyCommand(g), newCleanCommand(g), newAgentCommand(g),
		group("edge", "Move edge nodes and services to a hub", newEdgeImportCommand(g)),
		group("explain", "Show why a placement chooses what it chooses", newExplainPlacementCommand(g)),
		group("create", "Create a set of clusters, a placement or a work", newCreateClusterSetCommand(g), newCreatePlacementCommand(g), newCreateWorkCommand(g)),
		newWorkCommand(g), newRolloutCommand(g), newDeployCheckCommand(g),
		newWhyCommand(g), newDoctorCommand(g), newTreeCommand(g), newTopCommand(g),
		group("delete", "Delete a set or a work, or remove a cluster from the hub", newDeleteClusterCommand(g), newDeleteClusterSetCommand(g), newDeleteWorkCommand(g)))
	cmd.AddCommand(newBindCommands(g)...)
	cmd.AddCommand(newGrantCommands(g)...)
	upstreams := group("clusterset", "Same as bind and unbind", newBindCommands(g)...)
	upstreams.Hidden = true // for users who know clusteradm
	cmd.AddCommand(upstreams)
	return cmd
}

// shownFlags are the global flags in --help. The other flags of kubectl work too.
var shownFlags = []string{"as", "as-group", "context", "kubeconfig", "request-timeout", "v"}

func (g *global) addGlobalFlags(cmd *cobra.Command) {
	fs := cmd.PersistentFlags()
	g.flags.AddFlags(fs)
	verbosity := fs.IntP("v", "v", 0, fmt.Sprintf("Log level of the requests to the servers, 0 to %d. Their content is never logged.", logging.MaxVerbosity))
	fs.VisitAll(func(f *pflag.Flag) { f.Hidden = !slices.Contains(shownFlags, f.Name) })
	cmd.PersistentPreRunE = func(*cobra.Command, []string) error { return g.setupLog(*verbosity) }
	must(cmd.RegisterFlagCompletionFunc("context", g.completeContexts))
}

// where returns the flags by which the user has selected the cluster, for commands that are printed.
func (g *global) where() (flags []string) {
	if f := g.flags.KubeConfig; f != nil && *f != "" {
		flags = append(flags, "--kubeconfig="+*f)
	}
	if f := g.flags.Context; f != nil && *f != "" {
		flags = append(flags, "--context="+*f)
	}
	return flags
}

// setupLog prevents libraries from logging what a command prints itself.
func (g *global) setupLog(verbosity int) error {
	// Without a logger, controller-runtime prints a warning to stderr after 30 seconds, and commands that wait may take longer.
	log.SetLogger(klog.Background())
	klog.LogToStderr(false)
	klog.SetOutput(g.ErrOut)
	if verbosity == 0 {
		klog.SetOutput(io.Discard)
	}
	var level klog.Level
	return level.Set(fmt.Sprint(min(verbosity, logging.MaxVerbosity)))
}

func newVersionCommand(g *global) *cobra.Command {
	out := newFormat("text", "json")
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return out.print(g.Out, map[string]string{"version": g.version}, "kubectl-hub %s\n", g.version)
		},
	}
	out.addTo(cmd)
	return cmd
}
