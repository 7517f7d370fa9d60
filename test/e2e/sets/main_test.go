// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sets tests sets of clusters: their members and who sees them, exclusive sets, status, and the examples of the specification.
package sets

import (
	"os"
	"testing"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Run(m)) }
