// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Command hub-agent registers a cluster with a hub and keeps the hub informed of it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"k8s.io/component-base/cli"

	"github.com/clusterhub/clusterhub/pkg/agent"
	_ "github.com/clusterhub/clusterhub/pkg/publicroots"
)

func main() {
	os.Exit(run())
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	cmd := agent.NewCommand(ctx)
	if info, ok := debug.ReadBuildInfo(); ok {
		cmd.Version = info.Main.Version
	}
	if err := cli.RunNoErrOutput(cmd); err != nil {
		// One plain line, whatever the format of the log: it is for the person, or the client, who has started us.
		fmt.Fprintln(os.Stderr, "Error:", err)
		return 1
	}
	return 0
}
