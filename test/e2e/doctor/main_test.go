// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package doctor tests kubectl hub doctor with real faults: each has a finding, and is fixed by the printed commands.
package doctor

import (
	"os"
	"testing"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Run(m)) }
