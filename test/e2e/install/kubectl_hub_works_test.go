// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"strings"
	"testing"

	localhub "github.com/clusterhub/clusterhub/pkg/local/hub"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// worksIn returns the flags of join for an agent that has rights in one namespace, which it creates.
func worksIn(t *testing.T, cluster *localhub.Instance) []string {
	t.Helper()
	harness.MustKubectlOf(t, cluster, "", "create", "namespace", "web")
	return []string{"--works=admin", "--works-namespaces=web"}
}

const installer = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: installer}
rules:
- {apiGroups: ["*"], resources: ["*"], verbs: [get, list, create, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: installer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: installer}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: installer}]
`

// givesNoMoreThanItHas runs join as a user who may create any role and any binding, as long as these grant no more than the user has.
func givesNoMoreThanItHas(t *testing.T, p harness.Plugin, cluster *localhub.Instance, join []string) {
	t.Helper()
	harness.MustKubectlOf(t, cluster, installer, "apply", "-f", "-")
	defer harness.MustKubectlOf(t, cluster, installer, "delete", "-f", "-")
	before := inventory(t, cluster)
	_, stderr, err := p.Run(t, append(join, "--context", "c1", "--works=cluster-admin", "--as=installer")...)
	if err == nil {
		t.Fatal("a user gives what it does not have")
	}
	harness.Contains(t, stderr, "this user may not grant the agent the rights of ", "Have an admin of the cluster run kubectl hub join")
	sameInventory(t, "a join that was refused", before, inventory(t, cluster))
}

const workOfWeb = `
apiVersion: work.open-cluster-management.io/v1
kind: ManifestWork
metadata: {name: web, namespace: c1}
spec:
  workload:
    manifests:
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: web}, data: {text: hello}}
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: default}, data: {text: hello}}
    - {apiVersion: v1, kind: Namespace, metadata: {name: webs}}
`

// bringsWhatItMay verifies that an agent applies a work as far as its rights permit.
func bringsWhatItMay(t *testing.T, h, cluster *localhub.Instance) {
	t.Helper()
	harness.MustKubectlOf(t, h, workOfWeb, "apply", "-f", "-")
	harness.Eventually(t, "the agent says what it may not", func(context.Context) (bool, error) {
		said := harness.MustKubectlOf(t, h, "", "get", "manifestwork", "web", "-n", "c1", "-o",
			`jsonpath={range .status.resourceStatus.manifests[*]}{.conditions[?(@.type=="Applied")].status} {.conditions[?(@.type=="Applied")].message}{"\n"}{end}`)
		lines := strings.Split(said, "\n")
		return harness.Holds(len(lines) > 2 && strings.HasPrefix(lines[0], "True ") && strings.HasPrefix(lines[1], "False ") && strings.Contains(lines[1], "forbidden") &&
			strings.HasPrefix(lines[2], "False ") && strings.Contains(lines[2], "forbidden"), said)
	})
	if got := brought(t, cluster); got != "hello owned" {
		t.Errorf("the object is %q", got)
	}
}

// brought returns the text of the work's object, and whether the object belongs to the work, or "" if it does not exist.
func brought(t *testing.T, cluster *localhub.Instance) string {
	t.Helper()
	got := harness.MustKubectlOf(t, cluster, "", "get", "configmaps", "-n", "web", "--field-selector=metadata.name=web", "-o",
		"jsonpath={range .items[*]}{.data.text} {.metadata.ownerReferences[*].kind}{end}")
	text, owners, _ := strings.Cut(got, " ")
	if owners != "" {
		return text + " owned"
	}
	return text
}

// endsWorks checks the state of the work's object after unjoin, and that no other objects of works remain.
func endsWorks(t *testing.T, h, cluster *localhub.Instance, want string) {
	t.Helper()
	if got := brought(t, cluster); got != want {
		t.Errorf("the object is %q, want %q", got, want)
	}
	if crds := harness.MustKubectlOf(t, cluster, "", "get", "crds", "-o", "name"); strings.Contains(crds, "appliedmanifestworks") {
		t.Errorf("there are %s", crds)
	}
	harness.MustKubectlOf(t, cluster, "", "delete", "namespace", "web", "--timeout="+harness.Timeout.String())
	if h == nil {
		return
	}
	// No agent removes its finalizer any more.
	harness.MustKubectlOf(t, h, "", "delete", "manifestwork", "web", "-n", "c1", "--wait=false")
	harness.MustKubectlOf(t, h, "", "patch", "manifestwork", "web", "-n", "c1", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
}
