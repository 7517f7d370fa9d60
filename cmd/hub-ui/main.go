// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Command hub-ui serves the page of a hub to users who log in at an OIDC proxy in front of it.
package main

import (
	"os"

	"github.com/clusterhub/clusterhub/pkg/command"
	_ "github.com/clusterhub/clusterhub/pkg/publicroots"
	"github.com/clusterhub/clusterhub/pkg/ui/hubui"
)

func main() { os.Exit(command.Main(hubui.NewCommand())) }
