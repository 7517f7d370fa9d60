// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/clusterhub/clusterhub/test/bench/kit"
)

func TestOptions(t *testing.T) {
	valid := func() kit.Options {
		return kit.Options{Fleet: 200, Rounds: 1, Lists: 1, Writers: 1, Watchers: 1, Moves: 1, Restarts: 1, Only: "k,l,m", Joining: 1,
			AccessRequests: 1, AccessClusters: 1, DriftInterval: time.Second, Placements: 1, Changes: 1, WorksPerCluster: 1, AgentWorks: 1,
			AgentManifests: 1, AgentWatches: 1, Klusterlets: 1, ManagedClusters: 1, EdgePolicies: 1, Rest: time.Second}
	}
	good := valid()
	if err := validate(&good); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*kit.Options){
		"--only=z":              func(o *kit.Options) { o.Only = "z" },
		"--klusterlets":         func(o *kit.Options) { o.Klusterlets = 0 },
		"--managed-clusters":    func(o *kit.Options) { o.ManagedClusters = 0 },
		"--edge-policies":       func(o *kit.Options) { o.EdgePolicies = 0 },
		"--rest has to be":      func(o *kit.Options) { o.Rest = 0 },
		"--token-life=10m0s":    func(o *kit.Options) { o.TokenLife = 10 * time.Minute },
		"--placements":          func(o *kit.Options) { o.Placements = 0 },
		"--changes":             func(o *kit.Options) { o.Changes = 0 },
		"--works-per-cluster":   func(o *kit.Options) { o.WorksPerCluster = 0 },
		"--agent-works":         func(o *kit.Options) { o.AgentWorks = 0 },
		"--agent-manifests":     func(o *kit.Options) { o.AgentManifests = 0 },
		"--agent-watches":       func(o *kit.Options) { o.AgentWatches = 0 },
		"--agent-writes":        func(o *kit.Options) { o.AgentWrites = -1 },
		"--fleet=150 has to be": func(o *kit.Options) { o.Fleet = 150 },
	} {
		o := valid()
		change(&o)
		if err := validate(&o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
