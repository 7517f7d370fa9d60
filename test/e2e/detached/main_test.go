// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package detached tests hubs and agents that run outside of the cluster that they serve.
package detached

import (
	"os"
	"testing"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
	"github.com/clusterhub/clusterhub/test/kubelet"
)

func TestMain(m *testing.M) {
	kubelet.AsRoot()
	os.Exit(harness.Run(m, func(c *localhub.Options) {
		c.HubControllerManagerArgs = nil // with registration
		c.Replicas = 1
		c.FrontArgs = []string{"--enable-bootstrap-token-auth"}
	}))
}
