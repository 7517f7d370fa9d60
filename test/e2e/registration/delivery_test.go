// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// node is the node that pods name, as a plain cluster has no scheduler.
const node = "node"

// bound is a manifest of the objects that a team needs for replica sets: a namespace, a set and a binding of the same name, and a placement.
const bound = `
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSet
metadata: {name: %[1]s}
---
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata: {name: %[1]s, namespace: %[1]s}
spec: {clusterSet: %[1]s}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: all, namespace: %[1]s}
spec: {}
`

// deployed is a replica set with a Deployment that is rolled out to one cluster at a time.
const deployed = `
apiVersion: work.open-cluster-management.io/v1alpha1
kind: ManifestWorkReplicaSet
metadata: {name: web, namespace: %s}
spec:
  cascadeDeletionPolicy: Foreground
  placementRefs:
  - name: all
    rolloutStrategy:
      type: Progressive
      progressive: {maxConcurrency: 1, progressDeadline: %s}
  manifestWorkTemplate:
    manifestConfigs:
    - resourceIdentifier: {group: apps, resource: deployments, namespace: web, name: web}
      feedbackRules: [{type: WellKnownStatus}]
    workload:
      manifests:
      - {apiVersion: v1, kind: Namespace, metadata: {name: web}}
      - apiVersion: apps/v1
        kind: Deployment
        metadata: {name: web, namespace: web}
        spec:
          selector: {matchLabels: {app: web}}
          template:
            metadata: {labels: {app: web}}
            spec:
              nodeName: node
              terminationGracePeriodSeconds: 0
              containers: [{name: web, image: "example.com/web:%s"}]
`

// delivery is a hub with managed clusters, whose agents apply works with the rights of their manifests.
type delivery struct {
	*testing.T
	hub *localhub.Instance
	// team is a namespace with a placement of all clusters.
	team     string
	clusters []*managed
	// stop has the functions that stop the agents.
	stop map[*managed]func()
}

func newDelivery(t *testing.T, hub *localhub.Instance, clusters int) *delivery {
	t.Helper()
	d := &delivery{T: t, hub: hub, team: harness.Unique("team"), stop: map[*managed]func(){}}
	d.apply(bound, d.team)
	for _, p := range plains.Lend(t, clusters) {
		m := managedOn(t, hub, p)
		d.clusters = append(d.clusters, m)
		d.stop[m] = m.agent(t, "--works", "--spoke-kubeconfig="+m.worker(t))
	}
	for _, m := range d.clusters {
		harness.Eventually(t, "the cluster asks for a certificate", func(context.Context) (bool, error) { return len(m.requests(t)) == 1, nil })
		d.on("label", "--overwrite", "managedcluster", m.name, harness.SetLabel+"="+d.team)
		m.accepted(t, true)
		m.awaitCondition(t, registration.ConditionAvailable, metav1.ConditionTrue)
	}
	return d
}

// kubelet starts kwok for the cluster, which then has one node. kwok runs without leases of nodes: with leases, kwok may list the pods of a node
// before it knows that it owns the node, and skip them forever.
func (m *managed) kubelet(t *testing.T) {
	t.Helper()
	nodes := harness.Kube(t, m.AdminConfig()).CoreV1().Nodes()
	harness.Must(nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, metav1.CreateOptions{}))(t)
	harness.StartDaemon(t, harness.Binary(t, "kwok"), "--kubeconfig="+m.AdminKubeconfig(), "--config="+filepath.Join("testdata", "kwok.yaml"),
		"--manage-single-node="+node, "--node-lease-duration-seconds=0")
}

// on runs kubectl on the hub.
func (d *delivery) on(args ...string) string {
	d.Helper()
	return strings.TrimSpace(harness.MustKubectlOf(d.T, d.hub, "", args...))
}

func (d *delivery) apply(yaml string, args ...any) {
	d.Helper()
	harness.MustKubectlOf(d.T, d.hub, fmt.Sprintf(yaml, args...), "apply", "-f", "-")
}

// eventually waits until ok accepts the output of kubectl on the hub.
func (d *delivery) eventually(what string, ok func(string) bool, args ...string) (got string) {
	d.Helper()
	harness.Eventually(d.T, what, func(context.Context) (bool, error) {
		got = d.on(args...)
		return harness.Holds(ok(got), got)
	})
	return got
}

func is(want string) func(string) bool { return func(got string) bool { return got == want } }

// says waits until the rollout reports "STATUS REASON MESSAGE" for the current generation.
func (d *delivery) says(parts ...string) string {
	d.Helper()
	return d.eventually("the rollout says "+strings.Join(parts, ", "), func(got string) bool {
		for _, part := range parts {
			if !strings.Contains(got, part) {
				return false
			}
		}
		generation, observed, _ := strings.Cut(got, " ")
		return strings.HasPrefix(observed, generation+" ")
	}, "get", "mwrs", "web", "-n", d.team, "-o", `jsonpath={.metadata.generation}{range .status.conditions[?(@.type=="PlacementRolledOut")]} {.observedGeneration} {.status} {.reason} {.message}{end}`)
}

// images returns the images in the works of the set by cluster: "managed-1=first managed-2=first".
func (d *delivery) images() string {
	d.Helper()
	return d.on("get", "manifestworks", "-A", "-l", "work.open-cluster-management.io/manifestworkreplicaset="+d.team+".web", "-o",
		`jsonpath={range .items[*]}{.metadata.namespace}={.spec.workload.manifests[1].spec.template.spec.containers[0].image} {end}`)
}
