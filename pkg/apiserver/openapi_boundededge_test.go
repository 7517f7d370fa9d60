// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/apis/edge/validation"
	"github.com/clusterhub/clusterhub/pkg/edge/model"
)

// boundedEdge are objects like those in bounded.
var boundedEdge = []string{`
apiVersion: edge.clusterhub.dev/v1alpha1
kind: EdgeNode
metadata: {name: c1, resourceVersion: "1"}
spec:
  nodeType: cluster
  pattern: shop/all
  label: a
  description: a
  properties: [{name: a, value: b, type: string}]
  constraints: ["a == b"]
  deployment: {properties: [{name: a, value: b, type: string}], constraints: ["a == b"]}
  management: {properties: [{name: a, value: b, type: string}], constraints: ["a == b"]}
status:
  arch: amd64
  cpu: 1
  memory: 1
  kubernetesVersion: v1.37.1
  namespace: a
  namespaceScoped: true
  clusterID: a
  clusterObjects: [{group: a, kind: A, name: a}]
`, `
apiVersion: edge.clusterhub.dev/v1alpha1
kind: EdgeService
metadata: {name: web--1.0.0--amd64, namespace: shop, resourceVersion: "1"}
spec:
  label: a
  description: a
  documentation: a
  url: web
  version: 1.0.0
  arch: amd64
  userInput: [{name: a, label: a, type: string, defaultValue: a}]
  deployment: {}
  policy: {properties: [{name: a, value: b, type: string}], constraints: ["a == b"]}
`, `
apiVersion: edge.clusterhub.dev/v1alpha1
kind: DeploymentPolicy
metadata: {name: web, namespace: shop, resourceVersion: "1"}
spec:
  label: a
  description: a
  service:
    name: web
    org: shop
    arch: amd64
    clusterNamespace: a
    serviceVersions:
    - {version: 1.0.0, priority: {priority_value: 1, retries: 1, retry_durations: 1, verified_durations: 1}}
  properties: [{name: a, value: b, type: string}]
  constraints: ["a == b"]
  userInput:
  - {serviceOrgid: shop, serviceUrl: web, serviceArch: amd64, serviceVersionRange: "[1.0.0,2.0.0)", inputs: [{name: a, value: b}]}
status:
  conditions: [{type: A, status: "True", reason: R, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}]
  nodes: {reached: 1, selected: 1, placed: 1, running: 1, failed: 1}
  excluded: [{reason: A, nodes: 1}]
`, `
apiVersion: edge.clusterhub.dev/v1alpha1
kind: DeploymentPattern
metadata: {name: all, namespace: shop, resourceVersion: "1"}
spec:
  label: a
  description: a
  services:
  - serviceUrl: web
    serviceOrgid: shop
    serviceArch: amd64
    serviceVersions:
    - {version: 1.0.0, priority: {priority_value: 1, retries: 1, retry_durations: 1, verified_durations: 1}}
  clusterNamespace: a
  userInput:
  - {serviceOrgid: shop, serviceUrl: web, serviceArch: amd64, serviceVersionRange: "[1.0.0,2.0.0)", inputs: [{name: a, value: b}]}
status:
  conditions: [{type: A, status: "True", reason: R, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}]
  nodes: {reached: 1, selected: 1, placed: 1, running: 1, failed: 1}
  excluded: [{reason: A, nodes: 1}]
`, `
apiVersion: edge.clusterhub.dev/v1alpha1
kind: EdgePlacement
metadata: {name: ` + edge.PlacementName(edge.PlacementOrigin{Kind: edge.KindDeploymentPolicy, Name: "web"}, "c1") + `, namespace: shop, resourceVersion: "1"}
spec:
  node: c1
  origin: {kind: DeploymentPolicy, name: web}
  services: [{name: web, org: shop, version: 1.0.0, arch: amd64, targetNamespace: a}]
status:
  state: Running
  reason: A
  message: a
  work: a
  attempts: [{org: shop, name: web, version: 1.0.0, state: Retrying, failures: 1, work: a, message: a}]
  attemptsOf: a
`, `
apiVersion: edge.clusterhub.dev/v1alpha1
kind: DeployCheck
metadata: {namespace: shop}
spec:
  policyName: web
  services:
  - org: shop
    spec:
      label: a
      description: a
      documentation: a
      url: web
      version: 1.0.0
      arch: amd64
      deployment: {}
      userInput: [{name: a, label: a, type: string, defaultValue: a}]
      policy: {properties: [{name: a, value: b, type: string}], constraints: ["a == b"]}
  nodes:
  - name: c1
    spec:
      nodeType: cluster
      pattern: shop/all
      label: a
      description: a
      properties: [{name: a, value: b, type: string}]
      constraints: ["a == b"]
      deployment: {properties: [{name: a, value: b, type: string}], constraints: ["a == b"]}
      management: {properties: [{name: a, value: b, type: string}], constraints: ["a == b"]}
    status:
      arch: amd64
      cpu: 1
      memory: 1
      kubernetesVersion: v1.37.1
      namespace: a
      clusterID: a
      clusterObjects: [{group: a, kind: A, name: a}]
  nodeNames: [c2]
  limit: 1
  continue: a
`}

// refusalsOfEdge returns the errors of validation.
func refusalsOfEdge(t *testing.T, object, old runtime.Object) field.ErrorList {
	languages := model.Languages()
	switch o := object.(type) {
	case *edge.EdgeNode:
		return append(validation.ValidateEdgeNode(o, languages), validation.ValidateEdgeNodeStatusUpdate(o, old.(*edge.EdgeNode))...)
	case *edge.EdgeService:
		return validation.ValidateEdgeService(o, languages)
	case *edge.DeploymentPolicy:
		return append(validation.ValidateDeploymentPolicy(o, languages), validation.ValidateDeploymentPolicyStatusUpdate(o, old.(*edge.DeploymentPolicy))...)
	case *edge.DeploymentPattern:
		return append(validation.ValidateDeploymentPattern(o, languages), validation.ValidateDeploymentPatternStatusUpdate(o, old.(*edge.DeploymentPattern))...)
	case *edge.EdgePlacement:
		return append(validation.ValidateEdgePlacement(o), validation.ValidateEdgePlacementStatusUpdate(o, old.(*edge.EdgePlacement))...)
	case *edge.DeployCheck:
		return validation.ValidateDeployCheck(o, languages)
	}
	t.Fatalf("no validation of %T is known", object)
	return nil
}
