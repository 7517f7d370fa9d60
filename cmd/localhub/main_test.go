// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
)

func TestTopologyFlags(t *testing.T) {
	for args, want := range map[string][]int{
		"": {0, 0, 0, 0}, // as many as the hub has
		"--fronts=2 --hub-apiservers=3 --etcd-members=1 --clusters=4": {2, 3, 1, 4},
	} {
		var config localhub.Options
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		topologyFlags(flags, &config)
		err := flags.Parse(strings.Fields(args))
		if got := []int{config.FrontReplicas, config.Replicas, config.EtcdMembers, config.Clusters}; err != nil || !slices.Equal(got, want) {
			t.Errorf("%q is %v, %v, want %v", args, got, err, want)
		}
	}
}

// TestReached verifies that the output after a start has each kubeconfig.
func TestReached(t *testing.T) {
	config := localhub.Options{Dir: filepath.Join(t.TempDir(), "hub")}
	hub, err := localhub.Open(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"cluster-1", managedName, detachedName, edgeName} {
		if _, err := localhub.Open(config.Cluster(name)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := reached(hub)
	want := strings.ReplaceAll(`  kubeconfig  DIR/admin.kubeconfig
  logs        DIR/logs
  berlin-1    DIR/berlin-1/admin.kubeconfig, of a cluster that has joined the hub
  cluster-1   DIR/cluster-1/admin.kubeconfig, of a cluster that is not registered with the hub
  london-1    DIR/london-1/admin.kubeconfig, of a cluster that has edge nodes of the hub
  madrid-1    DIR/madrid-1/admin.kubeconfig, of a cluster that has joined the hub, and runs no agent
`, "DIR", config.Dir)
	if err != nil || got != want {
		t.Errorf("%v, got\n%swant\n%s", err, got, want)
	}
}
