// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"
)

func TestOptions(t *testing.T) {
	valid := func() options {
		return options{fleet: 200, rounds: 1, lists: 1, writers: 1, watchers: 1, moves: 1, restarts: 1, only: "k,l,m", joining: 1,
			accessRequests: 1, accessClusters: 1, driftInterval: time.Second, placements: 1, changes: 1, worksPerCluster: 1, agentWorks: 1,
			agentManifests: 1, agentWatches: 1, klusterlets: 1, managedClusters: 1, edgePolicies: 1, rest: time.Second}
	}
	good := valid()
	if err := validate(&good); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*options){
		"--only=z":              func(o *options) { o.only = "z" },
		"--klusterlets":         func(o *options) { o.klusterlets = 0 },
		"--managed-clusters":    func(o *options) { o.managedClusters = 0 },
		"--edge-policies":       func(o *options) { o.edgePolicies = 0 },
		"--rest has to be":      func(o *options) { o.rest = 0 },
		"--token-life=10m0s":    func(o *options) { o.tokenLife = 10 * time.Minute },
		"--placements":          func(o *options) { o.placements = 0 },
		"--changes":             func(o *options) { o.changes = 0 },
		"--works-per-cluster":   func(o *options) { o.worksPerCluster = 0 },
		"--agent-works":         func(o *options) { o.agentWorks = 0 },
		"--agent-manifests":     func(o *options) { o.agentManifests = 0 },
		"--agent-watches":       func(o *options) { o.agentWatches = 0 },
		"--agent-writes":        func(o *options) { o.agentWrites = -1 },
		"--fleet=150 has to be": func(o *options) { o.fleet = 150 },
	} {
		o := valid()
		change(&o)
		if err := validate(&o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
