// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Command hub-controller-manager runs the controllers of a hub.
package main

import (
	"os"
	"runtime/debug"

	"k8s.io/component-base/cli"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/clusterhub/clusterhub/pkg/controllers/manager"
	_ "github.com/clusterhub/clusterhub/pkg/publicroots"
)

func main() {
	cmd := manager.NewCommand(ctrl.SetupSignalHandler())
	if info, ok := debug.ReadBuildInfo(); ok {
		cmd.Version = info.Main.Version
	}
	os.Exit(cli.Run(cmd))
}
