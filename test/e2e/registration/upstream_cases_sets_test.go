// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"
	"strings"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// workerOf grants a user all rights on works, except to set an executor.
const workerOf = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: %[1]s, namespace: %[2]s}
rules:
- {apiGroups: [work.open-cluster-management.io], resources: [manifestworks, manifestworkreplicasets], verbs: [create, update, patch, get, list, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: %[1]s, namespace: %[2]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: %[1]s}
subjects: [{kind: User, name: %[1]s}]
`

// nilExecutor is upstream's case, followed by the cases that are ours.
func nilExecutor(c *upstreamCase) {
	user := c.work
	c.apply(workerOf, user, c.m.name)
	c.apply(workerOf, user, c.team)
	const refusal = "cannot manipulate the Manifestwork with executor /klusterlet-work-sa in namespace "
	harness.Eventually(c.T, "the user may not have a work without an executor", func(context.Context) (bool, error) {
		got, _ := c.try("create", c.workOf(c.configMap("cm1", "{}")), "--as", user)
		return harness.Holds(strings.Contains(got, "Error from server (BadRequest)") && strings.Contains(got, refusal+c.m.name), got)
	})

	c.Log("Nor by taking the executor from one")
	c.write("create", c.workOf(c.configMap("cm1", "{}"))+"  executor: {subject: {type: ServiceAccount, serviceAccount: {namespace: ops, name: deployer}}}\n")
	c.refused("replace", c.workOf(c.configMap("cm1", "{}")), "--as", user)
	cmd := c.hub.Kubectl(c.Context(), "patch", "manifestwork", "-n", c.m.name, c.work, "--as", user, "--type=json", "-p", `[{"op":"remove","path":"/spec/executor"}]`)
	out, _ := cmd.CombinedOutput()
	harness.Contains(c.T, string(out), refusal)

	c.Log("Nor by a replica set, which is written by hub-controller-manager")
	c.write("create", fmt.Sprintf(setOf, user, c.team, "all", "Background", c.configMap("cm1", "{}")), "--as", user)
	c.eventually("the set says so", func(got string) bool {
		return strings.HasPrefix(got, "False NotAllowed ") && strings.Contains(got, `may not execute-as manifestworks "system:serviceaccount::klusterlet-work-sa" in namespace `+c.m.name)
	}, "get", "mwrs", "-n", c.team, user, "-o", `jsonpath={range .status.conditions[?(@.type=="Authorized")]}{.status} {.reason} {.message}{end}`)
	c.on("delete", "mwrs", "-n", c.team, user)

	c.Log("By the right alone")
	c.on("create", "role", "-n", c.m.name, user+"-executes", "--verb=execute-as", "--resource=manifestworks.work.open-cluster-management.io",
		"--resource-name=system:serviceaccount::klusterlet-work-sa")
	c.on("create", "rolebinding", "-n", c.m.name, user+"-executes", "--role="+user+"-executes", "--user="+user)
	harness.Eventually(c.T, "the user may", func(context.Context) (bool, error) {
		got, _ := c.try("replace", c.workOf(c.configMap("cm1", "{}")), "--as", user)
		return harness.Holds(strings.Contains(got, "replaced"), got)
	})
	c.isApplied(c.work, 1)
}

// setOf is a replica set that is rolled out to all clusters at once.
const setOf = `
apiVersion: work.open-cluster-management.io/v1alpha1
kind: ManifestWorkReplicaSet
metadata: {name: %s, namespace: %s}
spec:
  placementRefs: [{name: %s, rolloutStrategy: {type: All, all: {progressDeadline: None}}}]
  cascadeDeletionPolicy: %s
  manifestWorkTemplate: {workload: {manifests: [%s]}}
`

func replicaSet(c *upstreamCase) {
	made := harness.Unique("made")
	cm := "{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: " + made + "}}"
	c.write("create", fmt.Sprintf(setOf, c.work, c.team, c.work, "Background", fmt.Sprintf(cm, "cm1")+", "+fmt.Sprintf(cm, "cm2")+
		", {apiVersion: v1, kind: Namespace, metadata: {name: "+made+"}}"))
	c.apply("{apiVersion: cluster.open-cluster-management.io/v1beta1, kind: Placement, metadata: {name: %s, namespace: %s}, spec: {clusterSets: [%[2]s]}}", c.work, c.team)
	// The last two numbers are in upstream's API, but its controller of v1.2.0 does not set them.
	c.eventually("the summary", is("total 1, applied 1, available 1, progressing 0, degraded 0, desired 1, updated 1: True"), "get", "mwrs", "-n", c.team, c.work, "-o",
		`jsonpath={range .status.summary}total {.total}, applied {.applied}, available {.available}, progressing {.progressing}, degraded {.degraded}, `+
			`desired {.desiredTotal}, updated {.updated}{end}: {.status.conditions[?(@.type=="ManifestworkApplied")].status}`)
	c.there("get", "configmaps", "-n", made, "cm1", "cm2")
	c.on("delete", "mwrs", "-n", c.team, c.work, "--timeout="+harness.Timeout.String())
	c.on("delete", "placement", "-n", c.team, c.work)
}

// several creates clusters without agents, and a replica set that selects them.
func (c *upstreamCase) several(policy string) (label string) {
	c.Helper()
	set := harness.Unique("several")
	c.apply(strings.Replace(bound, "spec: {}", "spec: {tolerations: [{key: cluster.open-cluster-management.io/unreachable, operator: Exists}]}", 1), set)
	for i := range 3 {
		c.apply("{apiVersion: cluster.open-cluster-management.io/v1, kind: ManagedCluster, metadata: {name: %s-%d, labels: {%s: %[1]s}}, spec: {hubAcceptsClient: true}}",
			set, i, harness.SetLabel)
	}
	c.apply(setOf, c.work, set, "all", policy, "{apiVersion: v1, kind: ConfigMap, metadata: {name: cm, namespace: default}, data: {a: b}}")
	c.eventually("the status", is("True 3"), "get", "mwrs", "-n", set, c.work, "-o", `jsonpath={.status.conditions[?(@.type=="PlacementVerified")].status} {.status.summary.total}`)
	label = "work.open-cluster-management.io/manifestworkreplicaset=" + set + "." + c.work
	if works := c.on("get", "manifestworks", "-A", "-l", label, "-o", "name"); len(strings.Fields(works)) != 3 {
		c.Errorf("the works are %s", works)
	}
	c.Cleanup(func() {
		_ = c.hub.Kubectl(context.Background(), "delete", "managedclusters", "-l", harness.SetLabel+"="+set, "--wait=false").Run()
	})
	return label
}

// setOfLabel returns the namespace of the replica set.
func setOfLabel(label string) string {
	_, value, _ := strings.Cut(label, "=")
	namespace, _, _ := strings.Cut(value, ".")
	return namespace
}

func replicaSetOfSeveral(c *upstreamCase) {
	label := c.several("Background")
	c.on("delete", "mwrs", "-n", setOfLabel(label), c.work, "--timeout="+harness.Timeout.String())
	c.eventually("the works are gone", is(""), "get", "manifestworks", "-A", "-l", label, "-o", "name")
}

func replicaSetForeground(c *upstreamCase) {
	label := c.several("Foreground")
	namespace := setOfLabel(label)
	left := c.on("get", "manifestworks", "-A", "-l", label, "-o", "jsonpath={.items[0].metadata.namespace}")
	finalizers := func(list string) {
		name := c.on("get", "manifestworks", "-n", left, "-l", label, "-o", "jsonpath={.items[0].metadata.name}")
		c.on("patch", "manifestwork", "-n", left, name, "--type=merge", "-p", `{"metadata":{"finalizers":`+list+`}}`)
	}
	finalizers(`["example.com/test"]`)
	c.on("delete", "mwrs", "-n", namespace, c.work, "--wait=false")
	c.eventually("one work is left", func(got string) bool { return strings.HasPrefix(got, left+" 20") && strings.Count(got, "\n") == 0 },
		"get", "manifestworks", "-A", "-l", label, "-o", `jsonpath={range .items[*]}{.metadata.namespace} {.metadata.deletionTimestamp}{"\n"}{end}`)
	if got := c.on("get", "mwrs", "-n", namespace, c.work, "-o", "jsonpath={.metadata.deletionTimestamp} {.metadata.finalizers}"); !strings.HasPrefix(got, "20") || !strings.HasSuffix(got, "]") {
		c.Errorf("the set is %q, and its work is still there", got)
	}
	finalizers("null")
	c.on("wait", "--for=delete", "mwrs/"+c.work, "-n", namespace, "--timeout="+harness.Timeout.String())
}
