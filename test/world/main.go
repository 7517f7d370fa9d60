// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Command world runs a hub for end-to-end tests until it is interrupted: `make world`.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := harness.RunWorld(ctx, "_output/world"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
