// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package docs runs the commands of the documentation on a hub as its readers have it, and checks that they print what the pages state.
package docs

import (
	"os"
	"testing"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Run(m)) }
