// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"strings"
	"testing"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// TestDelivery_OfDeployments verifies that a rollout without a CEL rule continues with the next cluster when the Deployment of the previous one is
// ready, and stops if it does not become ready.
func TestDelivery_OfDeployments(t *testing.T) {
	d := newDelivery(t, harness.Hub(t), 2)
	d.apply(deployed, d.team, "10m", "first")
	const waits = " (progressing: 0 of 1 replicas are available)"
	d.says("False", "0 of 2 clusters have succeeded; 1 in progress", waits)
	works := strings.Fields(d.images())
	if len(works) != 1 {
		t.Fatalf("without a kubelet anywhere, there are works for %v", works)
	}
	first, second := d.clusters[0], d.clusters[1]
	if !strings.HasPrefix(works[0], first.name+"=") {
		first, second = second, first
	}

	t.Log("A kubelet makes the Deployment of the first cluster ready")
	first.kubelet(t)
	d.says("False", "1 of 2 clusters have succeeded; 1 in progress: "+second.name+waits)
	second.kubelet(t)
	d.says("True Complete")
	for _, m := range d.clusters {
		d.eventually("the feedback", is("ReadyReplicas=1 Replicas=1 AvailableReplicas=1"), "get", "manifestworks", "-n", m.name, "-o",
			`jsonpath={range .items[*].status.resourceStatus.manifests[1].statusFeedback.values[*]}{.name}={.fieldValue.integer} {end}`)
	}

	t.Log("A template that does not get ready goes to one cluster only")
	d.apply(deployed, d.team, "5s", "missing")
	d.says("False", "1 failed", first.name)
	if got := d.images(); strings.Count(got, ":missing") != 1 || strings.Count(got, ":first") != 1 {
		t.Errorf("the works are %s", got)
	}

	t.Log("One that does goes to all")
	d.apply(deployed, d.team, "10m", "second")
	d.says("True Complete")
	if got := d.images(); strings.Count(got, ":second") != 2 {
		t.Errorf("the works are %s", got)
	}
	d.on("delete", "mwrs", "web", "-n", d.team, "--timeout="+harness.Timeout.String())
}
