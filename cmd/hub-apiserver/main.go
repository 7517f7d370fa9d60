// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Command hub-apiserver serves the hub's API groups behind a kube-apiserver, the front.
package main

import (
	"os"

	"github.com/clusterhub/clusterhub/pkg/apiserver/options"
	"github.com/clusterhub/clusterhub/pkg/command"
	_ "github.com/clusterhub/clusterhub/pkg/publicroots"
)

func main() { os.Exit(command.Main(options.NewCommand())) }
