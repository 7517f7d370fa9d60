// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Command hub-agent registers a cluster with a hub and reports the cluster's state to it.
package main

import (
	"os"

	"github.com/clusterhub/clusterhub/pkg/agent"
	"github.com/clusterhub/clusterhub/pkg/command"
	_ "github.com/clusterhub/clusterhub/pkg/publicroots"
)

func main() { os.Exit(command.Main(agent.NewCommand())) }
