// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver tests hub-apiserver as a server: what it publishes and to whom, flags, certificates and the doors that they open, bad
// input and bounds, load, crashes, a full disk, and how it ends.
package apiserver

import (
	"fmt"
	"os"
	"testing"

	"github.com/clusterhub/clusterhub/pkg/localhub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// agentWrites and agentBurst are the limit on what one agent writes, per second and at once: so low that a busy machine reaches it, too.
const agentWrites, agentBurst = 1, 60

// mostPlacements is the limit on the placements of a namespace. No test makes as many, but the one that is about it.
const mostPlacements = 5

// mostObjects and mostBytesOfAll are the limits on all objects of a namespace. No test makes as many, but the one that is about them.
const mostObjects, mostBytesOfAll = 200, 8 << 20

func TestMain(m *testing.M) {
	os.Exit(harness.Run(m, func(c *localhub.Config) {
		c.HubAPIServerArgs = append(c.HubAPIServerArgs, fmt.Sprintf("--agent-writes-per-second=%d", agentWrites),
			fmt.Sprintf("--agent-writes-burst=%d", agentBurst), fmt.Sprintf("--max-placements-per-namespace=%d", mostPlacements),
			fmt.Sprintf("--max-objects-per-namespace=%d", mostObjects), fmt.Sprintf("--max-bytes-per-namespace=%d", mostBytesOfAll))
	}))
}
