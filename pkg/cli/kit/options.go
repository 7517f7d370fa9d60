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

// Options are the streams and the flags that all commands share. They make the connections of a command.
type Options struct {
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
func (o *Options) AddFlags(cmd *cobra.Command) {
	fs := cmd.PersistentFlags()
	o.ConfigFlags.AddFlags(fs)
	verbosity := fs.IntP("v", "v", 0, fmt.Sprintf("Log level of the requests to the servers, 0 to %d. Their content is never logged.", logging.MaxVerbosity))
	fs.VisitAll(func(f *pflag.Flag) { f.Hidden = !slices.Contains(shownFlags, f.Name) })
	cmd.PersistentPreRunE = func(*cobra.Command, []string) error { return o.setupLog(*verbosity) }
	Must(cmd.RegisterFlagCompletionFunc("context", o.completeContexts))
}

// ContextFlags returns the flags by which the user has selected the cluster, for commands that are printed.
func (o *Options) ContextFlags() (flags []string) {
	if f := o.ConfigFlags.KubeConfig; f != nil && *f != "" {
		flags = append(flags, "--kubeconfig="+*f)
	}
	if f := o.ConfigFlags.Context; f != nil && *f != "" {
		flags = append(flags, "--context="+*f)
	}
	return flags
}

// setupLog prevents libraries from logging what a command prints itself.
func (o *Options) setupLog(verbosity int) error {
	// Without a logger, controller-runtime prints a warning to stderr after 30 seconds, and commands that wait may take longer.
	log.SetLogger(klog.Background())
	klog.LogToStderr(false)
	klog.SetOutput(o.ErrOut)
	if verbosity == 0 {
		klog.SetOutput(io.Discard)
	}
	var level klog.Level
	return level.Set(fmt.Sprint(min(verbosity, logging.MaxVerbosity)))
}

// WithContext returns the options of the same user for another kubeconfig or another context.
func (o *Options) WithContext(kubeconfig, context string) *Options {
	other, flags := *o, genericclioptions.NewConfigFlags(true)
	flags.KubeConfig, flags.Context = &kubeconfig, &context
	flags.Timeout, flags.CacheDir = o.ConfigFlags.Timeout, o.ConfigFlags.CacheDir
	flags.Impersonate, flags.ImpersonateUID, flags.ImpersonateGroup = o.ConfigFlags.Impersonate, o.ConfigFlags.ImpersonateUID, o.ConfigFlags.ImpersonateGroup
	other.ConfigFlags = flags
	return &other
}

// ContextARN returns the name of the cluster in the kubeconfig if it is the ARN of an EKS cluster, as the aws CLI sets it, or "".
func (o *Options) ContextARN() string {
	cluster := o.ContextCluster()
	if _, err := irsa.ParseClusterARN(cluster); err != nil {
		return ""
	}
	return cluster
}

// ContextCluster returns the name in the kubeconfig of the cluster that the flags select, or "".
func (o *Options) ContextCluster() string {
	config, err := o.ConfigFlags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return ""
	}
	name := config.CurrentContext
	if *o.ConfigFlags.Context != "" {
		name = *o.ConfigFlags.Context
	}
	context, ok := config.Contexts[name]
	if !ok {
		return ""
	}
	return context.Cluster
}

// Warn prints a warning. It escapes control characters.
func (o *Options) Warn(format string, args ...any) {
	_, _ = fmt.Fprintf(o.ErrOut, "Warning: %s\n", command.Printable(fmt.Sprintf(format, args...)))
}

// Note prints a message that is not a warning.
func (o *Options) Note(format string, args ...any) {
	_, _ = fmt.Fprintf(o.ErrOut, "Note: %s\n", command.Printable(fmt.Sprintf(format, args...)))
}
