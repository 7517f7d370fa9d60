// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

const workYAML = `
apiVersion: work.open-cluster-management.io/v1
kind: ManifestWork
metadata: {name: web, namespace: NAMESPACE}
spec:
  workload:
    manifests:
    - apiVersion: example.com/v1
      kind: Thing
      metadata: {name: a, namespace: default}
      anything: {b: [1, null, {c: d}]}
  manifestConfigs:
  - resourceIdentifier: {group: example.com, resource: things, name: a, namespace: default}
    updateStrategy: {type: ServerSideApply, serverSideApply: {force: true}}
`

const replicaSetYAML = `
apiVersion: work.open-cluster-management.io/v1alpha1
kind: ManifestWorkReplicaSet
metadata: {name: web, namespace: NAMESPACE}
spec:
  manifestWorkTemplate:
    workload:
      manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}}]
  placementRefs: [{name: all}]
`

// TestWorks_KindsMatchUpstream verifies that users and programs that know the kinds as CustomResourceDefinitions find them unchanged.
func TestWorks_KindsMatchUpstream(t *testing.T) {
	namespace := harness.NewNamespace(t)
	in := func(yaml string) string { return strings.ReplaceAll(yaml, "NAMESPACE", namespace) }
	get := func(resource, path string) string {
		t.Helper()
		return harness.MustKubectl(t, "", "get", resource, "web", "-n", namespace, "-o", "jsonpath="+path)
	}

	harness.MustKubectl(t, in(workYAML), "apply", "-f", "-")
	if out := get("manifestwork", "{.spec.workload.manifests[0].anything}"); out != `{"b":[1,null,{"c":"d"}]}` {
		t.Errorf("of a manifest is kept: %s", out)
	}
	if out := get("manifestwork", "{.spec.manifestConfigs[0].feedbackScrapeType} {.spec.manifestConfigs[0].updateStrategy.serverSideApply.fieldManager}"); out != "Poll work-agent" {
		t.Errorf("defaults are %s", out)
	}
	// The same write again is no change, also by server-side apply.
	version := get("manifestwork", "{.metadata.generation}")
	harness.MustKubectl(t, in(workYAML), "apply", "-f", "-")
	harness.MustKubectl(t, in(workYAML), "apply", "--server-side", "--field-manager=kubectl-client-side-apply", "--force-conflicts", "-f", "-")
	harness.MustKubectl(t, "", "label", "manifestwork", "web", "-n", namespace, "a=b")
	if now := get("manifestwork", "{.metadata.generation}"); now != version {
		t.Errorf("generation %s, was %s", now, version)
	}
	harness.MustKubectl(t, strings.ReplaceAll(in(workYAML), "c: d", "c: e"), "apply", "--server-side", "--force-conflicts", "-f", "-")
	harness.Contains(t, get("manifestwork", "{.spec.workload.manifests[0].anything}"), `{"c":"e"}`)
	harness.Contains(t, harness.MustKubectl(t, "", "get", "manifestworks", "-n", namespace), "NAME", "AGE", "web")

	// Clients written in Go send null for empty lists.
	const nulls = `{"metadata":{"name":"nulls"},"spec":{"workload":{"manifests":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}]},"manifestConfigs":null},
		"status":{"conditions":null,"resourceStatus":{"manifests":null}}}`
	client := harness.Admin(t).WorkV1().RESTClient()
	answer, err := client.Post().Namespace(namespace).Resource("manifestworks").SetHeader("Content-Type", "application/json").
		Body([]byte(strings.Replace(nulls, "{", `{"apiVersion":"work.open-cluster-management.io/v1","kind":"ManifestWork",`, 1))).Do(t.Context()).Raw()
	if err != nil || strings.Contains(string(answer), ":null") {
		t.Errorf("%v, the answer is %s", err, answer)
	}

	for says, yaml := range map[string]string{
		"manifests should not be empty":           `{"apiVersion":"work.open-cluster-management.io/v1","kind":"ManifestWork","metadata":{"name":"bad"},"spec":{}}`,
		"executor service account can not be nil": strings.Replace(strings.Replace(nulls, "{", `{"apiVersion":"work.open-cluster-management.io/v1","kind":"ManifestWork",`, 1), `"manifestConfigs":null`, `"executor":{"subject":{"type":"ServiceAccount"}}`, 1),
	} {
		err := client.Post().Namespace(namespace).Resource("manifestworks").SetHeader("Content-Type", "application/json").Body([]byte(yaml)).Do(t.Context()).Error()
		if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want a 400 that says %q", err, says)
		}
	}

	harness.MustKubectl(t, in(replicaSetYAML), "apply", "-f", "-")
	if out := get("mwrs", "{.spec.placementRefs[0].rolloutStrategy.all.progressDeadline} {.spec.cascadeDeletionPolicy}"); out != "None Background" {
		t.Errorf("defaults are %s", out)
	}
	harness.Contains(t, get("mwrs", `{.metadata.annotations.work\.clusterhub\.dev/author}`), `"username"`)
	harness.MustKubectl(t, "", "patch", "mwrs", "web", "-n", namespace, "--subresource=status", "--type=merge", "-p",
		`{"status":{"conditions":[{"type":"PlacementVerified","status":"False","reason":"PlacementDecisionEmpty","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
	harness.Contains(t, harness.MustKubectl(t, "", "get", "mwrs", "-n", namespace), "NAME", "PLACEMENT", "FOUND", "MANIFESTWORKS", "APPLIED", "PlacementDecisionEmpty", "False")

	harness.Contains(t, harness.MustKubectl(t, "", "explain", "manifestwork.spec.executor"), "execute-as", "system:serviceaccount")
	harness.Contains(t, harness.MustKubectl(t, "", "explain", "mwrs.spec.placementRefs.rolloutStrategy.progressive.maxConcurrency"), "percentage")
	harness.MustKubectl(t, "", "delete", "manifestworks,mwrs", "--all", "-n", namespace)
}
