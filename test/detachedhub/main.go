// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Command detachedhub starts a hub whose servers are pods of another cluster, and runs a command with it: go test for folders of
// test/e2e, whose tests share this hub then. The hub ends with the command. hack/test.sh uses it.
package main

import (
	"fmt"
	"os"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
	"github.com/clusterhub/clusterhub/test/kubelet"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "Usage: detachedhub COMMAND [ARGUMENT ...]")
		os.Exit(2)
	}
	kubelet.AsRoot()
	os.Exit(harness.WithDetachedHub(os.Args[1:]...))
}
