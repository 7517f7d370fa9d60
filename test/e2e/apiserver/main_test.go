// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver tests hub-apiserver as a server: its API for each user, flags, certificates and the ports that accept them, bad input and limits,
// load, crashes, a full disk, and shutdown.
package apiserver

import (
	"fmt"
	"os"
	"testing"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// agentWrites and agentBurst limit the writes of one agent, per second and as a burst: so low that a busy machine reaches the limit, too.
const agentWrites, agentBurst = 1, 60

// maxPlacements is the limit on the placements of a namespace. Only the test of the limit creates as many.
const maxPlacements = 5

// maxObjects and maxBytesOfAll are the limits on all objects of a namespace. Only the test of the limits reaches them.
const maxObjects, maxBytesOfAll = 200, 8 << 20

func TestMain(m *testing.M) {
	os.Exit(harness.Run(m, func(c *localhub.Options) {
		c.HubAPIServerArgs = append(c.HubAPIServerArgs, fmt.Sprintf("--agent-writes-per-second=%d", agentWrites),
			fmt.Sprintf("--agent-writes-burst=%d", agentBurst), fmt.Sprintf("--max-placements-per-namespace=%d", maxPlacements),
			fmt.Sprintf("--max-objects-per-namespace=%d", maxObjects), fmt.Sprintf("--max-bytes-per-namespace=%d", maxBytesOfAll))
	}))
}
