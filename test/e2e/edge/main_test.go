// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package edge tests edge deployments: what comes of policies on a whole hub.
package edge

import (
	"os"
	"testing"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Run(m)) }
