// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Program is what the tests make images of.
package main

import (
	"os"
	"runtime"
)

func main() {
	if _, err := os.Stdout.WriteString("runs on " + runtime.GOARCH + "\n"); err != nil {
		os.Exit(1)
	}
}
