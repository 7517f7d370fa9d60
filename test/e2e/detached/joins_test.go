// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package detached

import (
	"fmt"
	"net"
	"strings"
	"testing"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// TestDetached_ClusterWithoutNodesJoinsAndGetsWorks verifies this for a managed cluster without nodes, and without a route to the hub or to any
// other host. One command makes it join, and also installs hub-operator if the management cluster lacks it: see world.join.
func TestDetached_ClusterWithoutNodesJoinsAndGetsWorks(t *testing.T) {
	w := newWorld(t)
	j := w.joined()
	j.condition("Available", "True")
	j.condition("HubConnectionDegraded", "False")
	j.isToldApart()

	// A route would be detected: the hub responds outside, and local addresses respond inside.
	hub := addressOf(t, w.hub)
	if conn, err := net.Dial("tcp", hub); err != nil {
		t.Error(err)
	} else {
		_ = conn.Close()
	}
	own, err := w.managed.Inside()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.managed.Reaches(own); err != nil {
		t.Errorf("the managed cluster does not reach itself: %v", err)
	}
	if err := w.managed.Reaches(hub); err == nil {
		t.Error("the managed cluster reaches the hub")
	}
	if err := w.managed.Alone(); err != nil {
		t.Error(err)
	}

	// Nothing runs on the managed cluster, and no object there requests it.
	for _, kind := range []string{"nodes", "pods", "deployments", "daemonsets", "statefulsets", "jobs"} {
		if got, err := kubectl(t, w.managed.Instance, "get", kind, "-A", "-o", "name"); err != nil || strings.TrimSpace(got) != "" {
			t.Errorf("the managed cluster has the %s %s, %v", kind, got, err)
		}
	}
	// A component that lacks a right would log this and retry forever.
	if logs := w.management.Node.Logs(j.namespace, ""); strings.Contains(logs, "forbidden") || logs == "" {
		t.Errorf("the agent lacks a right:\n%s", logs)
	}
	if logs := w.management.Node.Logs("clusterhub-operator", ""); strings.Contains(logs, "forbidden") || logs == "" {
		t.Errorf("hub-operator lacks a right:\n%s", logs)
	}
}

// isToldApart has two more Klusterlets wait, one for the hub and one for a Secret, and verifies that the status distinguishes the three as
// docs/detached.md shows.
func (j *joined) isToldApart() {
	j.Helper()
	two, three := j.asksByHand(j.name+"-2"), j.name+"-3"
	harness.MustKubectlOf(j.T, j.management.Instance, fmt.Sprintf(`
apiVersion: operator.open-cluster-management.io/v1
kind: Klusterlet
metadata: {name: %[1]s}
spec: {clusterName: %[1]s, deployOption: {mode: Detached}}
`, three), "apply", "-f", "-")
	r := newReader(j.T, map[string]*localhub.Instance{"mgmt": j.management.Instance})
	r.Instead("c1", j.name, "c2", two.name, "c3", three, "WAITING FOR\n", "WAITING FOR\n…\n")
	r.Types(shown(j.T, "TestDetached_ClusterWithoutNodesJoinsAndGetsWorks", "kubectl hub get klusterlets"))
	harness.MustKubectlOf(j.T, j.management.Instance, "", "delete", "klusterlet", two.name, three, "--timeout="+harness.Timeout.String())
	harness.MustKubectlOf(j.T, j.hub, "", "delete", "managedcluster", two.name, "--timeout="+harness.Timeout.String())
}

// losesNamespace deletes the namespace of the cluster on the hub. The cluster becomes available and gets works again: the role of the agent for its
// works outlives the namespace. The test takes one deletion of a namespace.
func (j *joined) losesNamespace() {
	j.Helper()
	uid := func() string {
		got, err := kubectl(j.T, j.hub, "get", "namespace", j.name, "--ignore-not-found", "-o", "jsonpath={.metadata.uid}")
		if err != nil {
			j.Fatal(err)
		}
		return got
	}
	before := uid()
	harness.MustKubectlOf(j.T, j.hub, "", "delete", "namespace", j.name, "--timeout="+harness.Timeout.String())
	eventually(j.T, "the hub makes the namespace again", func() error {
		if now := uid(); now == "" || now == before {
			return fmt.Errorf("its UID is %q, and was %q", now, before)
		}
		return nil
	})
	j.isAvailable()
	j.brings()
}
