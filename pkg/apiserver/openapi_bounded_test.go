// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	clustervalidation "github.com/clusterhub/clusterhub/pkg/apis/cluster/validation"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
	openmcpvalidation "github.com/clusterhub/clusterhub/pkg/apis/openmcp/validation"
	"github.com/clusterhub/clusterhub/pkg/apis/work"
	workvalidation "github.com/clusterhub/clusterhub/pkg/apis/work/validation"
)

// bounded are objects with all fields for which OpenAPI states an enum, a pattern or a bound.
var bounded = []string{`
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: c1, resourceVersion: "1"}
spec:
  managedClusterClientConfigs: [{url: "https://api.example.com:6443"}]
  leaseDurationSeconds: 60
  taints: [{key: example.com/a, value: v, effect: NoSelect}]
status:
  conditions: [{type: A, status: "True", reason: R, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}]
  capacity: {cpu: "1"}
  allocatable: {cpu: "1"}
  version: {kubernetes: v1.37.1}
  clusterClaims: [{name: id, value: x}]
  managedNamespaces:
  - name: team-a
    clusterSet: devset
    conditions: [{type: A, status: "True", reason: R, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}]
`, `
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: ManagedClusterSet
metadata: {name: devset, resourceVersion: "1"}
spec:
  clusterSelector:
    selectorType: ExclusiveLabel
    exclusiveLabel: {key: cluster.open-cluster-management.io/clusterset, value: devset}
  managedNamespaces: [{name: team-a}]
`, `
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSet
metadata: {name: devset, resourceVersion: "1"}
spec:
  clusterSelector: {selectorType: ExclusiveClusterSetLabel}
  managedNamespaces: [{name: team-a}]
`, `
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: ManagedClusterSetBinding
metadata: {name: devset, namespace: dev, resourceVersion: "1"}
spec: {clusterSet: devset}
`, `
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata: {name: devset, namespace: dev, resourceVersion: "1"}
spec: {clusterSet: devset}
`, `
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: web, namespace: dev, resourceVersion: "1"}
spec:
  clusterSets: [devset]
  numberOfClusters: 3
  predicates:
  - requiredClusterSelector:
      claimSelector: {matchExpressions: [{key: region, operator: Exists}]}
      celSelector: {celExpressions: ["true"]}
  prioritizerPolicy:
    mode: Exact
    configurations:
    - scoreCoordinate: {type: AddOn, builtIn: Balance, addOn: {resourceName: load, scoreName: cpu}}
      weight: 2
  spreadPolicy:
    spreadConstraints: [{topologyKey: zone, topologyKeyType: Claim, maxSkew: 2, whenUnsatisfiable: DoNotSchedule}]
  tolerations: [{key: example.com/a, operator: Equal, value: v, effect: NoSelect, tolerationSeconds: 60}]
  decisionStrategy:
    groupStrategy:
      decisionGroups:
      - groupName: canary
        groupClusterSelector: {claimSelector: {matchExpressions: [{key: region, operator: Exists}]}}
      clustersPerDecisionGroup: 10%
  sortBy: Score
  scoreRateLimit: 30s
status:
  numberOfSelectedClusters: 1
  decisionGroups: [{decisionGroupIndex: 0, decisionGroupName: canary, decisions: [web-decision-1], clusterCount: 1}]
  conditions: [{type: A, status: "True", reason: R, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}]
  lastScoreUpdateTime: "2026-01-01T00:00:00Z"
`, `
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: PlacementDecision
metadata: {name: web-decision-1, namespace: dev, resourceVersion: "1"}
status:
  decisions: [{clusterName: c1, reason: x, score: 7}]
`, `
apiVersion: cluster.open-cluster-management.io/v1alpha1
kind: AddOnPlacementScore
metadata: {name: load, namespace: c1, resourceVersion: "1"}
status:
  conditions: [{type: A, status: "True", reason: R, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}]
  scores: [{name: cpu, value: 50}]
  validUntil: "2026-01-01T00:00:00Z"
`, `
apiVersion: cluster.open-cluster-management.io/v1alpha1
kind: ClusterClaim
metadata: {name: id.k8s.io, resourceVersion: "1"}
spec: {value: x}
`, `
apiVersion: clusters.openmcp.cloud/v1alpha1
kind: ClusterProfile
metadata: {name: dev.kind, resourceVersion: "1"}
spec:
  providerRef: {name: kind}
  providerConfigRef: {name: small}
  supportedVersions: [{version: 1.33.3}]
`, `
apiVersion: clusters.openmcp.cloud/v1alpha1
kind: Cluster
metadata: {name: blue, namespace: teams, resourceVersion: "1"}
spec:
  profile: dev.kind
  clusterConfigs: [{name: a}]
  kubernetes: {version: 1.33.3}
  purposes: [workload]
  tenancy: Shared
status:
  observedGeneration: 1
  phase: Ready
  conditions: [{type: A, status: "True", reason: R, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}]
  apiServer: https://api.example.com
  endpoints: [{name: apiserver-external, url: "https://api.example.com"}]
`, `
apiVersion: clusters.openmcp.cloud/v1alpha1
kind: ClusterRequest
metadata: {name: shop, namespace: teams, resourceVersion: "1"}
spec: {purpose: workload}
status:
  observedGeneration: 1
  phase: Granted
  conditions: [{type: A, status: "True", reason: R, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}]
  cluster: {name: blue, namespace: teams}
`, `
apiVersion: clusters.openmcp.cloud/v1alpha1
kind: AccessRequest
metadata: {name: ann, namespace: teams, resourceVersion: "1"}
spec:
  clusterRef: {name: blue, namespace: teams}
  requestRef: {name: shop, namespace: teams}
  token:
    permissions:
    - name: reader
      namespace: web
      rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
    roleRefs: [{kind: Role, name: a, namespace: web}]
status:
  observedGeneration: 1
  phase: Pending
  conditions: [{type: A, status: "True", reason: R, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}]
  secretRef: {name: ann.kubeconfig}
`, `
apiVersion: clusters.openmcp.cloud/v1alpha1
kind: AccessRequest
metadata: {name: ann, namespace: teams, resourceVersion: "1"}
spec:
  clusterRef: {name: blue, namespace: teams}
  requestRef: {name: shop, namespace: teams}
  oidc:
    name: corp
    issuer: https://oidc.example.com
    clientID: hub
    groupsPrefix: "g:"
    groupsClaim: groups
    usernamePrefix: "u:"
    usernameClaim: sub
    extraScopes: [email]
    roleBindings:
    - subjects: [{kind: User, name: ann}]
      roleRefs: [{kind: Role, name: a, namespace: web}]
    roles:
    - name: reader
      namespace: web
      rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
status:
  observedGeneration: 1
  phase: Pending
  conditions: [{type: A, status: "True", reason: R, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}]
`}

// refusals returns the errors of validation for the creation of an object, or for an update of its status.
func refusals(t *testing.T, object, old runtime.Object) field.ErrorList {
	t.Helper()
	switch o := object.(type) {
	case *cluster.ManagedCluster:
		return append(clustervalidation.ValidateManagedCluster(o), clustervalidation.ValidateManagedClusterStatusUpdate(o, old.(*cluster.ManagedCluster))...)
	case *cluster.ManagedClusterSet:
		return append(clustervalidation.ValidateManagedClusterSet(o), clustervalidation.ValidateManagedClusterSetStatusUpdate(o, old.(*cluster.ManagedClusterSet))...)
	case *cluster.ManagedClusterSetBinding:
		return clustervalidation.ValidateManagedClusterSetBinding(o)
	case *cluster.Placement:
		return append(clustervalidation.ValidatePlacement(o), clustervalidation.ValidatePlacementStatusUpdate(o, old.(*cluster.Placement))...)
	case *cluster.PlacementDecision:
		return clustervalidation.ValidatePlacementDecisionStatusUpdate(o, old.(*cluster.PlacementDecision))
	case *cluster.AddOnPlacementScore:
		return clustervalidation.ValidateAddOnPlacementScoreStatusUpdate(o, old.(*cluster.AddOnPlacementScore))
	case *cluster.ClusterClaim:
		return clustervalidation.ValidateClusterClaim(o)
	case *work.ManifestWork:
		errs := append(workvalidation.ValidateManifestWork(o), workvalidation.BadManifestWork(o, &work.ManifestWork{})...)
		return append(errs, workvalidation.ValidateManifestWorkStatusUpdate(o, old.(*work.ManifestWork))...)
	case *work.AppliedManifestWork:
		return append(workvalidation.ValidateAppliedManifestWork(o), workvalidation.ValidateAppliedManifestWorkUpdate(o, old.(*work.AppliedManifestWork))...)
	case *work.ManifestWorkReplicaSet:
		errs := append(workvalidation.ValidateManifestWorkReplicaSet(o), workvalidation.BadManifestWorkReplicaSet(o, &work.ManifestWorkReplicaSet{})...)
		return append(errs, workvalidation.ValidateManifestWorkReplicaSetStatusUpdate(o, old.(*work.ManifestWorkReplicaSet))...)
	case *openmcp.ClusterProfile:
		return openmcpvalidation.ValidateClusterProfile(o)
	case *openmcp.Cluster:
		return append(openmcpvalidation.ValidateCluster(o), openmcpvalidation.ValidateClusterStatusUpdate(o, old.(*openmcp.Cluster))...)
	case *openmcp.ClusterRequest:
		errs := openmcpvalidation.ValidateClusterRequest(o)
		if o.Status.Cluster == nil || *o.Status.Cluster != *old.(*openmcp.ClusterRequest).Status.Cluster {
			old = &openmcp.ClusterRequest{ObjectMeta: o.ObjectMeta} // a cluster that is set is immutable, whatever it is
		}
		return append(errs, openmcpvalidation.ValidateClusterRequestStatusUpdate(o, old.(*openmcp.ClusterRequest))...)
	case *openmcp.AccessRequest:
		return append(openmcpvalidation.ValidateAccessRequest(o), openmcpvalidation.ValidateAccessRequestStatusUpdate(o, old.(*openmcp.AccessRequest))...)
	}
	return refusalsOfEdge(t, object, old)
}
