// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Command hub-controller-manager runs the controllers of a hub.
package main

import (
	"os"

	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/controllers/manager"
	_ "github.com/clusterhub/clusterhub/pkg/publicroots"
)

func main() { os.Exit(command.Main(manager.NewCommand())) }
