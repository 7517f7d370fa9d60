// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package access tests clusters and access on request: the API of openMCP, the scheduler, the preparation of requests and its policy, providers,
// tokens, and the cleanup after requests end.
package access

import (
	"os"
	"testing"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

func TestMain(m *testing.M) {
	harness.LendAtMost(2)
	os.Exit(harness.Run(m))
}
