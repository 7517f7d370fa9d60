// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-hub is the kubectl plugin "kubectl hub": it sets up hubs, and registers clusters with them.
package main

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/clusterhub/clusterhub/pkg/cli"
	"github.com/clusterhub/clusterhub/pkg/command"
)

func main() {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	cmd := cli.NewCommand(streams, cmp.Or(command.Version(), cli.UnknownVersion))
	if strings.HasPrefix(filepath.Base(os.Args[0]), cli.CompletionName) {
		cmd.SetArgs(append([]string{"__complete"}, os.Args[1:]...))
	}
	os.Exit(command.Main(cmd))
}
