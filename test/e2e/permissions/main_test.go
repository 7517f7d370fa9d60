// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package permissions tests the rights on a hub: of users with their roles, of an agent, and of each component with its manifests.
package permissions

import (
	"os"
	"testing"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

func TestMain(m *testing.M) {
	os.Exit(harness.Run(m, func(c *localhub.Options) {
		// The tests try thousands of writes as agents, and must not be limited to one per second.
		c.HubAPIServerArgs = append(c.HubAPIServerArgs, "--agent-writes-burst=100000")
	}))
}
