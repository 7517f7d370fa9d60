// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package monitoring lets a real Prometheus ask a real hub for its metrics, and tries on it what is in artifacts/monitoring.
package monitoring

import (
	"os"
	"testing"

	"github.com/clusterhub/clusterhub/pkg/localhub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

func TestMain(m *testing.M) {
	os.Exit(harness.Run(m, func(c *localhub.Config) {
		// As in the manifests: an embedded etcd, all controllers, and metrics for those who may read them.
		c.ExternalEtcd, c.Replicas = false, 1
		c.HubControllerManagerArgs = []string{"--metrics-secure"}
	}))
}
