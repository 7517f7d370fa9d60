// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Command helm writes what comes from the charts in artifacts/charts, and packages them:
//
//	helm generate ROOT
//	helm package ROOT VERSION DIR
package main

import (
	"fmt"
	"os"

	"github.com/clusterhub/clusterhub/hack/helm/charts"
)

func main() {
	err := fmt.Errorf("usage: helm generate ROOT, or helm package ROOT VERSION DIR")
	switch args := os.Args[1:]; {
	case len(args) == 2 && args[0] == "generate":
		err = charts.Generate(args[1])
	case len(args) == 4 && args[0] == "package":
		err = charts.Package(args[1], args[2], args[3])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "helm:", err)
		os.Exit(1)
	}
}
