// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// placed is a placement of the team that selects one cluster.
const placed = `{apiVersion: cluster.open-cluster-management.io/v1beta1, kind: Placement, metadata: {name: %s, namespace: %s}, spec: {numberOfClusters: 1}}`

// work is a work of a cluster, with a ConfigMap that has feedback rules.
const work = `
apiVersion: work.open-cluster-management.io/v1
kind: ManifestWork
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  manifestConfigs:
  - resourceIdentifier: {group: "", resource: configmaps, namespace: web, name: %[1]s}
    feedbackRules: [{type: JSONPaths, jsonPaths: [{name: text, path: .data.text}]}]
  workload:
    manifests:
    - {apiVersion: v1, kind: Namespace, metadata: {name: web}}
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: %[1]s, namespace: web}, data: {text: %[3]s}}
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: "%[1]s-%[4]s", namespace: web}}
`

// TestDelivery_ByUpstream verifies that Open Cluster Management's placement controller and work agent can take turns with ours on the same
// objects.
func TestDelivery_ByUpstream(t *testing.T) {
	d := newDelivery(t, controlled(t), 1)
	d.apply(placed, "one", d.team)
	m := d.clusters[0]
	d.placementsTakeTurns(m.name)
	d.replicaSetsAreTakenOver(m)
	d.workAgentsTakeTurns(m)
	d.executorIsWithdrawn(m)
}

// decided waits until a placement has selected a cluster, and its status reports this.
func (d *delivery) decided(placement, cluster string) {
	d.Helper()
	d.eventually("the decision for "+placement, is(cluster), "get", "placementdecisions", "-n", d.team, "-l",
		"cluster.open-cluster-management.io/placement="+placement, "-o", "jsonpath={.items[*].status.decisions[*].clusterName}")
	d.eventually("the status of "+placement, is("1 True"), "get", "placements", placement, "-n", d.team, "-o",
		`jsonpath={.status.numberOfSelectedClusters} {.status.conditions[?(@.type=="PlacementSatisfied")].status}`)
}

// restartControllers restarts hub-controller-manager with only some of its controllers.
func (d *delivery) restartControllers(some string) *harness.Daemon {
	d.Helper()
	d.hub.StopHubControllerManager()
	return harness.StartDaemon(d.T, harness.Binary(d.T, "hub-controller-manager"), "--kubeconfig="+filepath.Join(d.hub.Dir(), "hub-controller-manager.kubeconfig"),
		"--health-probe-bind-address=0", "--metrics-bind-address=0", "--leader-elect=false", "--controllers="+some)
}

// replicaSetsAreTakenOver from upstream's controller. In the opposite direction, the works would be created a second time with different names.
func (d *delivery) replicaSetsAreTakenOver(m *managed) {
	t := d.T
	t.Helper()
	works := func() string {
		return d.on("get", "manifestworks", "-n", m.name, "-o", `jsonpath={range .items[*]}{.metadata.name} {.metadata.uid}{"\n"}{end}`)
	}
	// complete waits for the status that both controllers write.
	complete := func(text string) {
		t.Helper()
		awaitTexts(t, text, m)
		d.eventually("the status of the set", is("1 1 1"), "get", "mwrs", "web", "-n", d.team, "-o",
			`jsonpath={.status.summary.total} {.status.summary.applied} {.status.summary.available}`)
	}

	t.Log("Upstream's controller makes the works of a replica set")
	others := d.restartControllers("sets,placements,access,registration")
	upstream := d.upstreamReplicaSets()
	d.apply(delivering, d.team, "first")
	complete("first")
	d.apply(delivering, d.team, "second")
	complete("second")
	before := works()
	if !strings.HasPrefix(before, "web ") || strings.Contains(before, "\n") {
		t.Errorf("its works are %q", before)
	}

	t.Log("Ours takes them over")
	upstream.Kill()
	others.Kill()
	if err := d.hub.StartHubControllerManager(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.apply(delivering, d.team, "third")
	complete("third")
	d.says("True Complete")
	if after := works(); after != before {
		t.Errorf("the works were %q, and now they are %q", before, after)
	}
	d.on("delete", "mwrs", "web", "-n", d.team, "--timeout="+harness.Timeout.String())
	awaitTexts(t, "", m)
}

// placementsTakeTurns ends with our controller.
func (d *delivery) placementsTakeTurns(cluster string) {
	t := d.T
	t.Helper()
	d.decided("all", cluster)
	d.decided("one", cluster)
	versions := func() string {
		return d.on("get", "placements,placementdecisions", "-n", d.team, "-o", "jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.resourceVersion}\n{end}")
	}
	// unchanged verifies that decisions are not rewritten. It waits for a newer decision, after which the unchanged placements were processed as
	// well.
	unchanged := func(before string) {
		t.Helper()
		after := versions()
		if !strings.Contains(before, "PlacementDecision ") {
			t.Errorf("before, there was nothing but %q", before)
		}
		for _, line := range strings.Split(before, "\n") {
			if !strings.Contains(after, line) {
				t.Errorf("%q was written: now there are\n%s", line, after)
			}
		}
	}

	t.Log("Upstream's placement controller takes over")
	before := versions()
	others := d.restartControllers("sets,works,access,registration")
	upstream := d.upstreamPlacement()
	d.apply(placed, "upstreams", d.team)
	d.decided("upstreams", cluster)
	unchanged(before)

	t.Log("Ours takes over again")
	upstream.Kill()
	others.Kill()
	before = versions()
	if err := d.hub.StartHubControllerManager(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.apply(placed, "ours", d.team)
	d.decided("ours", cluster)
	unchanged(before)
}

// applied waits until the current generation of a work is applied, and feedback of its ConfigMap is reported.
func (d *delivery) applied(m *managed, name, text string) {
	d.Helper()
	d.eventually("the work "+name, func(got string) bool {
		generation, rest, _ := strings.Cut(got, " ")
		return rest == "True "+generation+" True "+text
	}, "get", "manifestwork", name, "-n", m.name, "-o", `jsonpath={.metadata.generation} {range .status.conditions[?(@.type=="Applied")]}{.status} {.observedGeneration}{end} `+
		`{.status.conditions[?(@.type=="Available")].status} {.status.resourceStatus.manifests[1].statusFeedback.values[0].fieldValue.string}`)
}

// identities returns the UIDs of the objects of works in the cluster.
func (m *managed) identities(t *testing.T, names ...string) string {
	t.Helper()
	const uids = `jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.uid} {.metadata.ownerReferences[*].uid}{"\n"}{end}`
	return harness.MustKubectlOf(t, m.Instance, "", append([]string{"get", "-n", "web", "-o", uids}, names...)...) +
		harness.MustKubectlOf(t, m.Instance, "", "get", "appliedmanifestworks", "-o", uids)
}

// workAgentsTakeTurns ends with our agent.
func (d *delivery) workAgentsTakeTurns(m *managed) {
	t := d.T
	t.Helper()
	absent := func(what string) {
		t.Helper()
		harness.Eventually(t, what+" is gone", func(context.Context) (bool, error) {
			got := harness.MustKubectlOf(t, m.Instance, "", "get", what, "-n", "web", "--ignore-not-found", "-o", "name")
			return harness.Holds(got == "", got)
		})
	}
	same := func(before string, names ...string) {
		t.Helper()
		if after := m.identities(t, names...); after != before {
			t.Errorf("there was\n%snow there is\n%s", before, after)
		}
	}
	for _, name := range []string{"a", "b"} {
		d.apply(work, name, m.name, "first", "x")
		d.applied(m, name, "first")
	}

	t.Log("Upstream's work agent takes over")
	before := m.identities(t, "configmap/a", "configmap/b", "namespace/web")
	d.stop[m]()
	stopOurs := m.agent(t)
	upstream := m.upstreamWork(t)
	for _, name := range []string{"a", "b"} {
		d.apply(work, name, m.name, "second", "y")
		d.applied(m, name, "second")
		absent("configmap/" + name + "-x")
	}
	same(before, "configmap/a", "configmap/b", "namespace/web")
	d.apply(work, "c", m.name, "second", "x")
	d.applied(m, "c", "second")
	d.on("delete", "manifestwork", "b", "-n", m.name, "--timeout="+harness.Timeout.String())
	absent("configmap/b")

	t.Log("Ours takes over again")
	before = m.identities(t, "configmap/a", "configmap/c", "namespace/web")
	upstream.Kill()
	stopOurs()
	m.agent(t, "--works", "--spoke-kubeconfig="+m.worker(t))
	for _, name := range []string{"a", "c"} {
		d.apply(work, name, m.name, "third", "z")
		d.applied(m, name, "third")
		absent("configmap/" + name + "-y")
	}
	absent("configmap/c-x")
	same(before, "configmap/a", "configmap/c", "namespace/web")
	for _, name := range []string{"a", "c"} {
		d.on("delete", "manifestwork", name, "-n", m.name, "--timeout="+harness.Timeout.String())
	}
	absent("namespace/web")
	if left := harness.MustKubectlOf(t, m.Instance, "", "get", "appliedmanifestworks", "-o", "name"); left != "" {
		t.Errorf("there are still %s", left)
	}
}
