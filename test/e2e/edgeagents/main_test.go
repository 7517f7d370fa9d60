// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package edgeagents runs the usage scenarios of edge deployments on real servers, as their users: teams that have one namespace of a cluster, users
// who deploy services, owners of nodes.
package edgeagents

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
		c.FrontArgs = []string{"--enable-bootstrap-token-auth"}
		c.Replicas = 1
	}))
}

// TestScenarios runs one cluster with three agents: one of the whole cluster, and those of two teams, which have one namespace each.
func TestScenarios(t *testing.T) {
	w := newWorld(t)
	for _, scenario := range []struct {
		name string
		play func(*world)
	}{
		{"the examples of the design", (*world).examples},
		{"what kubectl shows", (*world).shown},
		{"the rights of a team's agent", (*world).teamsRights},
		{"what changes", (*world).changes},
		{"once in a namespace", (*world).once},
		{"what is in no namespace", (*world).ofNoNamespace},
		{"patterns", (*world).patterns},
		{"agents come and go", (*world).comesAndGoes},
	} {
		t.Run(scenario.name, func(t *testing.T) {
			s := *w
			s.T = t
			scenario.play(&s)
		})
	}
}
