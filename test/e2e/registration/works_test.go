// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// delivering has the objects that a team creates on the hub.
const delivering = `
apiVersion: work.open-cluster-management.io/v1alpha1
kind: ManifestWorkReplicaSet
metadata: {name: web, namespace: %s}
spec:
  cascadeDeletionPolicy: Foreground
  placementRefs: [{name: all}]
  manifestWorkTemplate:
    workload:
      manifests:
      - {apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: web}, data: {text: %q}}
      - {apiVersion: v1, kind: Namespace, metadata: {name: web}}
`

// worker deploys to the cluster what the agent needs for works, and writes a kubeconfig of the agent's ServiceAccount.
func (m *managed) worker(t *testing.T) string {
	t.Helper()
	for _, folder := range []string{"agent", "agent-works"} {
		harness.MustKubectlOf(t, m.Instance, "", "apply", "-k", harness.Overlay(folder))
	}
	harness.MustKubectlOf(t, m.Instance, "", "wait", "--for=condition=Established", "--timeout="+harness.Timeout.String(), "crd/appliedmanifestworks.work.open-cluster-management.io")
	return accountKubeconfig(t, m.Instance, registration.AgentNamespace, "klusterlet-registration-sa")
}

// text returns the text that the cluster has of the work, or "".
func (m *managed) text(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(harness.MustKubectlOf(t, m.Instance, "", "get", "configmaps", "-n", "web", "--field-selector=metadata.name=web", "-o",
		"jsonpath={.items[*].data.text}"))
}

func awaitTexts(t *testing.T, want string, clusters ...*managed) {
	t.Helper()
	for _, m := range clusters {
		harness.Eventually(t, fmt.Sprintf("the text in %s is %q", m.name, want), func(context.Context) (bool, error) {
			return harness.Holds(m.text(t) == want, m.text(t))
		})
	}
}

// TestWorks_RunOnChosenClusters runs the whole workflow of a team, with two clusters whose agents have the rights of their
// manifests.
func TestWorks_RunOnChosenClusters(t *testing.T) {
	d := newDelivery(t, harness.Hub(t), 2)
	hub, one, two := d.hub, d.clusters[0], d.clusters[1]

	write := func(text string) { d.apply(delivering, d.team, text) }
	rolledOut := func(clusters int) {
		t.Helper()
		want := fmt.Sprintf("True %d %d", clusters, clusters)
		harness.Eventually(t, "the rollout is complete", func(context.Context) (bool, error) {
			got := d.on("get", "mwrs", "web", "-n", d.team, "-o",
				`jsonpath={.status.conditions[?(@.type=="PlacementRolledOut")].status} {.status.summary.applied} {.status.summary.available}`)
			return harness.Holds(got == want, got)
		})
	}
	write("first")
	awaitTexts(t, "first", one, two)
	rolledOut(2)

	t.Log("What is changed in a cluster is as it was")
	harness.MustKubectlOf(t, one.Instance, "", "delete", "configmap", "web", "-n", "web")
	awaitTexts(t, "first", one)

	t.Log("A new text goes to both, also to the one whose agent was away")
	d.stop[two]()
	write("second")
	awaitTexts(t, "second", one)
	two.agent(t, "--works", "--spoke-kubeconfig="+two.worker(t))
	awaitTexts(t, "second", two)
	rolledOut(2)

	t.Log("A cluster that is not chosen any more loses it")
	d.on("patch", "managedcluster", two.name, "--type=merge", "-p", `{"spec":{"taints":[{"key":"maintenance","effect":"NoSelect"}]}}`)
	awaitTexts(t, "", two)
	rolledOut(1)
	if got := one.text(t); got != "second" {
		t.Errorf("the other has %q", got)
	}

	t.Log("With the set, all of it goes")
	d.on("delete", "mwrs", "web", "-n", d.team, "--timeout="+harness.Timeout.String())
	awaitTexts(t, "", one)
	for _, m := range []*managed{one, two} {
		if left := d.on("get", "manifestworks", "-n", m.name, "-o", "name"); left != "" {
			t.Errorf("works of %s that are left: %s", m.name, left)
		}
		if left := harness.MustKubectlOf(t, m.Instance, "", "get", "appliedmanifestworks", "-o", "name"); left != "" {
			t.Errorf("what the agent of %s still remembers: %s", m.name, left)
		}
	}

	t.Log("What was put into a cluster goes with it")
	work := fmt.Sprintf(`{apiVersion: work.open-cluster-management.io/v1, kind: ManifestWork, metadata: {name: web, namespace: %s}, spec: {workload: {manifests: [
		{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: web}, data: {text: third}},
		{apiVersion: v1, kind: Namespace, metadata: {name: web}}]}}}`, one.name)
	harness.MustKubectlOf(t, hub, work, "apply", "-f", "-")
	awaitTexts(t, "third", one)
	d.on("delete", "managedcluster", one.name, "--timeout="+harness.Timeout.String())
	awaitTexts(t, "", one)
}
