// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Command hub-apiserver serves the cluster sets of a hub and their members behind a kube-apiserver.
package main

import (
	"os"
	"runtime/debug"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli"

	"github.com/clusterhub/clusterhub/pkg/apiserver/options"
	_ "github.com/clusterhub/clusterhub/pkg/publicroots"
)

func main() {
	cmd := options.NewCommand(genericapiserver.SetupSignalContext())
	if info, ok := debug.ReadBuildInfo(); ok {
		cmd.Version = info.Main.Version
	}
	os.Exit(cli.Run(cmd))
}
