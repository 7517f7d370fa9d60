// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Command hub-apiserver serves the cluster sets of a hub and their members behind a kube-apiserver.
package main

import (
	"os"

	"github.com/clusterhub/clusterhub/pkg/apiserver/options"
	"github.com/clusterhub/clusterhub/pkg/command"
	_ "github.com/clusterhub/clusterhub/pkg/publicroots"
)

func main() { os.Exit(command.Main(options.NewCommand())) }
