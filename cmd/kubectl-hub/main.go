// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-hub is the kubectl plugin "kubectl hub": it sets up hubs for clusters to join, and clusters to join hubs.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/clusterhub/clusterhub/pkg/cli"
)

func main() {
	os.Exit(run())
}

// version is set by make to that of the images, which it builds from the same commit.
var version string

func thisVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return cli.UnknownVersion
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	cmd := cli.NewCommand(genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}, thisVersion())
	if strings.HasPrefix(filepath.Base(os.Args[0]), cli.CompletionName) {
		cmd.SetArgs(append([]string{"__complete"}, os.Args[1:]...))
	}
	if err := cmd.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", cli.ErrorLine(err))
		return 1
	}
	return 0
}
