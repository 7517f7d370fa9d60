// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
)

// pagePort is the port of the page of the hub in the commands that `up` prints.
const pagePort = 8001

// counted are the kinds that `up` counts in the hub: their names in the output of kubectl, and in words.
var counted = []struct{ kind, one, more string }{
	{"managedcluster.cluster.open-cluster-management.io", "cluster", "clusters"},
	{"managedclusterset.cluster.open-cluster-management.io", "set", "sets"},
	{"clustersetmember.view.clusterhub.dev", "membership", "memberships"},
	{"placement.cluster.open-cluster-management.io", "placement", "placements"},
	{"manifestwork.work.open-cluster-management.io", "work", "works"},
	{"accessrequest.clusters.openmcp.cloud", "access request", "access requests"},
}

// numbers returns how many objects of each counted kind the hub has.
func numbers(ctx context.Context, hub *localhub.Instance) (string, error) {
	var kinds []string
	for _, c := range counted {
		kinds = append(kinds, c.kind)
	}
	out, err := hub.Kubectl(ctx, "get", strings.Join(kinds, ","), "-A", "-o", "name").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("kubectl get: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return count(string(out)), nil
}

// count counts the objects of each counted kind in the output of kubectl.
func count(named string) string {
	of := map[string]int{}
	for line := range strings.Lines(named) {
		kind, _, _ := strings.Cut(line, "/")
		of[kind]++
	}
	var said []string
	for _, c := range counted {
		words := c.more
		if of[c.kind] == 1 {
			words = c.one
		}
		said = append(said, fmt.Sprintf("%d %s", of[c.kind], words))
	}
	return strings.Join(said, ", ")
}

func status(config localhub.Options) error {
	hub, all, err := open(config)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		fmt.Println("The hub is not running: start it with `make up`.")
		return nil
	}
	missing := list(os.Stdout, all)
	access, err := reached(hub)
	if err != nil {
		return err
	}
	fmt.Printf("\n%s`make down` stops all processes and retains the data, `make clean` deletes it.\n", access)
	if missing > 0 {
		return fmt.Errorf("%d of %d processes do not run: `make up` starts them", missing, len(all))
	}
	return nil
}

// list prints a line for each process, and returns how many do not run.
func list(out io.Writer, all []localhub.ProcessStatus) (missing int) {
	for _, s := range all {
		says := s.Says
		if s.PID == 0 {
			missing++
		} else {
			runs := fmt.Sprintf("running, process %d", s.PID)
			if says != "" {
				runs += "; "
			}
			says = runs + says
		}
		fmt.Fprintf(out, "%-34s %s\n", s.Name, says)
	}
	return missing
}
