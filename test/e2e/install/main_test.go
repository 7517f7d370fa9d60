// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install tests how hubs and their clusters are installed: make up, kubectl hub, the manifests of artifacts/deploy, and what our programs log
// and trust at run time.
package install

import (
	"os"
	"testing"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
	"github.com/clusterhub/clusterhub/test/kubelet"
)

func TestMain(m *testing.M) {
	kubelet.AsRoot()
	os.Exit(harness.Run(m))
}
