// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver tests hub-apiserver as a server: what it publishes and to whom, flags, certificates and the doors that they open, bad
// input and bounds, load, crashes, a full disk, and how it ends.
package apiserver

import (
	"os"
	"testing"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Run(m)) }
