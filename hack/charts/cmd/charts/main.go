// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Command charts writes what comes from the charts in artifacts/charts, and packages them:
//
//	charts generate ROOT
//	charts package ROOT VERSION DIR
package main

import (
	"fmt"
	"os"

	"github.com/clusterhub/clusterhub/hack/charts"
)

func main() {
	err := fmt.Errorf("usage: charts generate ROOT, or charts package ROOT VERSION DIR")
	switch args := os.Args[1:]; {
	case len(args) == 2 && args[0] == "generate":
		err = charts.Generate(args[1])
	case len(args) == 4 && args[0] == "package":
		err = charts.Package(args[1], args[2], args[3])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "charts:", err)
		os.Exit(1)
	}
}
