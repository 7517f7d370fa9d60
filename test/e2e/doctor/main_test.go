// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package doctor tests kubectl hub doctor with faults that are there: each is named, and is gone when what was printed is pasted.
package doctor

import (
	"os"
	"testing"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Run(m)) }
