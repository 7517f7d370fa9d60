// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"testing"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// Works and rollouts, an access request and an edge node.
const details = `
apiVersion: v1
kind: Namespace
metadata:
  name: details
---
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata:
  name: details
---
apiVersion: work.open-cluster-management.io/v1
kind: ManifestWork
metadata:
  name: shop
  namespace: details
spec:
  workload:
    manifests:
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: prices, namespace: shop}}
---
apiVersion: work.open-cluster-management.io/v1alpha1
kind: ManifestWorkReplicaSet
metadata:
  name: web
  namespace: details
spec:
  manifestWorkTemplate:
    workload:
      manifests:
      - {apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: web}}
  placementRefs:
  - {name: nowhere, rolloutStrategy: {type: All}}
---
apiVersion: clusters.openmcp.cloud/v1alpha1
kind: AccessRequest
metadata:
  name: ann
  namespace: details
spec:
  ttl: 24h
  clusterRef: {name: blue, namespace: details}
  token:
    roleRefs: [{kind: ClusterRole, name: view}]
---
apiVersion: edge.clusterhub.dev/v1alpha1
kind: EdgeNode
metadata:
  name: details
spec:
  nodeType: cluster
`

// status is what the agent of the cluster would say of the work.
const status = `{"status":{
	"conditions":[{"type":"Applied","status":"False","reason":"AppliedManifestWorkFailed","message":"Failed to apply manifest work","lastTransitionTime":"2026-01-12T08:00:00Z","observedGeneration":1}],
	"resourceStatus":{"manifests":[{"resourceMeta":{"ordinal":0,"version":"v1","kind":"ConfigMap","resource":"configmaps","name":"prices","namespace":"shop"},
		"conditions":[{"type":"Applied","status":"False","reason":"AppliedManifestFailed","message":"namespaces \"shop\" not found","lastTransitionTime":"2026-01-12T08:00:00Z"}]}]}}}`

func TestViews_Details(t *testing.T) {
	h := fleet(t)
	harness.MustKubectlOf(t, h, details, "apply", "--server-side", "-f", "-")
	harness.MustKubectlOf(t, h, "", "patch", "manifestwork", "shop", "-n", "details", "--subresource=status", "--type=merge", "-p", status)
	s := serve(t, h, "")
	b := open(t, s, "/")
	for _, v := range []struct {
		path  string
		texts []string
	}{
		{"/v/works", []string{"shop", "Not applied", "Failed to apply manifest work", "web"}},
		{"/v/works/details/shop", []string{"ConfigMap shop/prices", `namespaces "shop" not found`, "Unknown", "kubectl hub why work shop --cluster details"}},
		{"/v/works/replicasets/details/web", []string{"No clusters", "nowhere", "All", "Its works"}},
		{"/v/access?n=details", []string{"ann", "details/blue", "in 2"}},
		{"/v/access/details/ann", []string{"details/blue", "Conditions"}},
		{"/v/edge", []string{"details", "cluster"}},
		{"/v/clusters/details", []string{"shop", "kubectl hub accept --clusters details", "kubectl hub why cluster details"}},
	} {
		b.view(s, v.path, v.texts...)
		b.wantAccessible()
		if problems := eval[string](b, `[...document.querySelectorAll(".problem")].map((e) => e.textContent).join("")`); problems != "" {
			t.Errorf("%s: %s", v.path, problems)
		}
	}
}
