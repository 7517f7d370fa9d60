// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package command has what our programs have in common: how they start, connect to their API server, and exit.
package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/logs"
	"k8s.io/component-base/term"
)

// Main runs the command of a program and returns the program's exit code. SIGINT or SIGTERM ends the context of the command, and a second one the
// program. An error is one plain line, whatever the format of the log: it is for the user, or the client, that has started the program.
func Main(cmd *cobra.Command) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	if cmd.Version == "" {
		cmd.Version = Version()
	}
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetGlobalNormalizationFunc(cliflag.WordSepNormalizeFunc)
	defer logs.FlushLogs()
	err := cmd.ExecuteContext(ctx)
	var end *Exit
	switch {
	case err == nil:
		return 0
	case errors.As(err, &end):
		return end.Code
	}
	fmt.Fprintln(os.Stderr, "Error:", ErrorLine(err))
	return 1
}

// Exit ends a program with a code that is a result, and not an error: the command has already printed everything.
type Exit struct {
	// Code is 2 or more: 1 is for errors.
	Code int
}

// Error implements error.
func (e *Exit) Error() string { return fmt.Sprintf("ends with %d", e.Code) }

// version is set by make to the version of the images, which it builds from the same commit.
var version string

// Version returns the version of the program, as set by make or go build, or "".
func Version() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return ""
}

// AddFlags adds flags to a command, whose help shows them in their groups.
func AddFlags(cmd *cobra.Command, flags cliflag.NamedFlagSets) {
	for _, set := range flags.FlagSets {
		cmd.Flags().AddFlagSet(set)
	}
	columns, _, _ := term.TerminalSize(cmd.OutOrStdout())
	cliflag.SetUsageAndHelpFunc(cmd, flags, columns)
}

// RESTConfig returns the configuration for the API server of a kubeconfig or, if that is empty, of the cluster in which the program runs. A token in
// a file is reloaded when it changes.
func RESTConfig(kubeconfig string) (*rest.Config, error) {
	config, err := restConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	FollowToken(config)
	return config, nil
}

func restConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		return rest.InClusterConfig()
	}
	return clientcmd.BuildConfigFromFlags("", kubeconfig)
}
