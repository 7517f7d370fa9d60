// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package monitoring has a real Prometheus scrape the metrics of a real hub, and tests artifacts/monitoring with it.
package monitoring

import (
	"os"
	"testing"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

func TestMain(m *testing.M) {
	os.Exit(harness.Run(m, func(c *localhub.Options) {
		// These are the settings of the manifests: an embedded etcd, all controllers, and metrics for authorized users.
		c.ExternalEtcd, c.Replicas = false, 1
		c.HubControllerManagerArgs = []string{"--metrics-secure"}
	}))
}
