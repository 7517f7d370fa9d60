// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kit has what all commands of kubectl hub share: the flags of every command, the connections to a hub and to a cluster, the
// output, the waits, and completion.
package kit

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

	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/irsa"
	"github.com/clusterhub/clusterhub/pkg/logging"
)

// UnknownVersion is the version of a program that was built without one.
const UnknownVersion = "unknown"

// Factory has the state that all commands share, and makes their connections.
type Factory struct {
	genericiooptions.IOStreams
	// ConfigFlags are kubectl's flags for the connection to a cluster.
	ConfigFlags *genericclioptions.ConfigFlags
	// Version is the version of this program.
	Version string
	// PollInterval is the interval of a wait, or 0 for the default. TrialTimeout is the time that a hub may take to issue a certificate, or 0 for the
	// default of init.
	PollInterval, TrialTimeout time.Duration
}

// shownFlags are the global flags in --help. The other flags of kubectl work too.
var shownFlags = []string{"as", "as-group", "context", "kubeconfig", "request-timeout", "v"}

// AddFlags adds the flags of all commands, and shows some of them in the help.
func (g *Factory) AddFlags(cmd *cobra.Command) {
	fs := cmd.PersistentFlags()
	g.ConfigFlags.AddFlags(fs)
	verbosity := fs.IntP("v", "v", 0, fmt.Sprintf("Log level of the requests to the servers, 0 to %d. Their content is never logged.", logging.MaxVerbosity))
	fs.VisitAll(func(f *pflag.Flag) { f.Hidden = !slices.Contains(shownFlags, f.Name) })
	cmd.PersistentPreRunE = func(*cobra.Command, []string) error { return g.setupLog(*verbosity) }
	Must(cmd.RegisterFlagCompletionFunc("context", g.completeContexts))
}

// ContextFlags returns the flags by which the user has selected the cluster, for commands that are printed.
func (g *Factory) ContextFlags() (flags []string) {
	if f := g.ConfigFlags.KubeConfig; f != nil && *f != "" {
		flags = append(flags, "--kubeconfig="+*f)
	}
	if f := g.ConfigFlags.Context; f != nil && *f != "" {
		flags = append(flags, "--context="+*f)
	}
	return flags
}

// setupLog prevents libraries from logging what a command prints itself.
func (g *Factory) setupLog(verbosity int) error {
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

// WithContext returns the options of the same user for another kubeconfig or another context.
func (g *Factory) WithContext(kubeconfig, context string) *Factory {
	other, flags := *g, genericclioptions.NewConfigFlags(true)
	flags.KubeConfig, flags.Context = &kubeconfig, &context
	flags.Timeout, flags.CacheDir = g.ConfigFlags.Timeout, g.ConfigFlags.CacheDir
	flags.Impersonate, flags.ImpersonateUID, flags.ImpersonateGroup = g.ConfigFlags.Impersonate, g.ConfigFlags.ImpersonateUID, g.ConfigFlags.ImpersonateGroup
	other.ConfigFlags = flags
	return &other
}

// ContextARN returns the name of the cluster in the kubeconfig if it is the ARN of an EKS cluster, as the aws CLI sets it, or "".
func (g *Factory) ContextARN() string {
	cluster := g.ContextCluster()
	if _, err := irsa.ParseClusterARN(cluster); err != nil {
		return ""
	}
	return cluster
}

// ContextCluster returns the name in the kubeconfig of the cluster that the flags select, or "".
func (g *Factory) ContextCluster() string {
	config, err := g.ConfigFlags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return ""
	}
	name := config.CurrentContext
	if *g.ConfigFlags.Context != "" {
		name = *g.ConfigFlags.Context
	}
	context, ok := config.Contexts[name]
	if !ok {
		return ""
	}
	return context.Cluster
}

// Warn prints a warning. It escapes control characters.
func (g *Factory) Warn(format string, args ...any) {
	_, _ = fmt.Fprintf(g.ErrOut, "Warning: %s\n", command.Printable(fmt.Sprintf(format, args...)))
}

// Note prints a message that is not a warning.
func (g *Factory) Note(format string, args ...any) {
	_, _ = fmt.Fprintf(g.ErrOut, "Note: %s\n", command.Printable(fmt.Sprintf(format, args...)))
}
