// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
)

func TestCount(t *testing.T) {
	got := count(`managedcluster.cluster.open-cluster-management.io/berlin-1
managedcluster.cluster.open-cluster-management.io/paris-1
clustersetmember.view.clusterhub.dev/global.berlin-1
placement.cluster.open-cluster-management.io/cache
`)
	if want := "2 clusters, 0 sets, 1 membership, 1 placement, 0 works, 0 access requests"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestList verifies that missing processes are listed and counted.
func TestList(t *testing.T) {
	var out strings.Builder
	missing := list(&out, []localhub.ProcessStatus{{Name: "etcd", PID: 7}, {Name: "kube-apiserver", Says: "exited once"}, {Name: "supervisor", PID: 8, Says: "restarted once"}})
	want := `etcd                               running, process 7
kube-apiserver                     exited once
supervisor                         running, process 8; restarted once
`
	if missing != 1 || out.String() != want {
		t.Errorf("%d are missing, want 1; got\n%swant\n%s", missing, out.String(), want)
	}
}

// TestSuperviseArgs verifies that the supervisor gets the flags of `up`, with absolute paths, and accepts them.
func TestSuperviseArgs(t *testing.T) {
	root := command()
	for _, cmd := range root.Commands() {
		if cmd.Name() != "up" {
			continue
		}
		if err := cmd.ParseFlags([]string{"--dir=here", "--fronts=2", "--detached", "--images="}); err != nil {
			t.Fatal(err)
		}
		args, err := superviseArgs(cmd.Flags())
		if err != nil {
			t.Fatal(err)
		}
		here, err := filepath.Abs("here")
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"--dir=" + here, "--fronts=2", "--etcd-members=0", "--detached=true", "--edge=false", "--images="} {
			if !slices.Contains(args, want) {
				t.Errorf("%v has no %s", args, want)
			}
		}
		supervise, rest, err := command().Find(args)
		if err == nil {
			err = supervise.ParseFlags(rest)
		}
		if err != nil || supervise.Name() != superviseCommand {
			t.Errorf("%v is %s: %v", args, supervise.Name(), err)
		}
		return
	}
	t.Error("there is no command up")
}
