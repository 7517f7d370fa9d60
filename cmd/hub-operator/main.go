// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Command hub-operator installs hubs and agents, according to ClusterManagers and Klusterlets.
package main

import (
	"os"

	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/operator"
	_ "github.com/clusterhub/clusterhub/pkg/publicroots"
)

func main() { os.Exit(command.Main(operator.NewCommand())) }
