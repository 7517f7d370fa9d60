// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package permissions tests who may do what on a hub: users by their roles, an agent, and each component with what its manifests give it.
package permissions

import (
	"os"
	"testing"

	"github.com/clusterhub/clusterhub/pkg/localhub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

func TestMain(m *testing.M) {
	os.Exit(harness.Run(m, func(c *localhub.Config) {
		// The tests try thousands of writes as agents, and are not to wait until one is let through each second.
		c.HubAPIServerArgs = append(c.HubAPIServerArgs, "--agent-writes-burst=100000")
	}))
}
