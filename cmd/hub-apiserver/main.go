// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Command hub-apiserver serves the cluster sets of a hub and their members behind a kube-apiserver.
package main

import (
	"os"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli"

	"github.com/clusterhub/clusterhub/pkg/apiserver/options"
)

func main() {
	os.Exit(cli.Run(options.NewCommand(genericapiserver.SetupSignalContext())))
}
