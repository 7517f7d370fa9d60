// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

// boundedWorks are objects like those in bounded.
var boundedWorks = []string{`
apiVersion: work.open-cluster-management.io/v1
kind: ManifestWork
metadata: {name: web, namespace: c1, resourceVersion: "1"}
spec:
  workload:
    manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]
  deleteOption:
    propagationPolicy: SelectivelyOrphan
    ttlSecondsAfterFinished: 1
    selectivelyOrphans: {orphaningRules: [{group: a, resource: a, name: a, namespace: a}]}
  manifestConfigs:
  - resourceIdentifier: {group: a, resource: a, name: a, namespace: a}
    feedbackScrapeType: Poll
    feedbackRules: [{type: JSONPaths, jsonPaths: [{name: a, version: v1, path: .a}]}]
    updateStrategy:
      type: ServerSideApply
      serverSideApply:
        fieldManager: work-agent
        ignoreFields: [{condition: OnSpokeChange, jsonPaths: [.a], jsonPointers: [/a], jqPathExpressions: [.a]}]
    conditionRules: [{condition: A, type: CEL, celExpressions: ["true"], message: a, messageExpression: '"a"'}]
    adoption: IfNoDiff
  executor: {subject: {type: ServiceAccount, serviceAccount: {namespace: a, name: a}}}
status:
  conditions: [{type: A, status: "True", reason: R, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}]
  resourceStatus:
    manifests:
    - resourceMeta: {ordinal: 0, group: a, version: v1, kind: A, resource: a, name: a, namespace: a}
      statusFeedback:
        values:
        - {name: a, fieldValue: {type: String, string: a, jsonRaw: "[]"}}
      conditions: [{type: A, status: "True", reason: R, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}]
`, `
apiVersion: work.open-cluster-management.io/v1
kind: AppliedManifestWork
metadata: {name: web, resourceVersion: "1"}
spec: {hubHash: a, agentID: a, manifestWorkName: a}
status:
  appliedResources: [{group: a, resource: a, name: a, namespace: a, version: v1, uid: a}]
`, `
apiVersion: work.open-cluster-management.io/v1alpha1
kind: ManifestWorkReplicaSet
metadata: {name: web, namespace: shop, resourceVersion: "1"}
spec:
  manifestWorkTemplate:
    workload:
      manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]
  placementRefs:
  - name: a
    rolloutStrategy:
      type: Progressive
      all: {progressDeadline: 1m}
      progressive: {progressDeadline: 1m, mandatoryDecisionGroups: [{groupName: a, groupIndex: 1}]}
      progressivePerGroup: {progressDeadline: 1m, mandatoryDecisionGroups: [{groupName: a, groupIndex: 1}]}
  cascadeDeletionPolicy: Foreground
status:
  conditions: [{type: A, status: "True", reason: R, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}]
  summary: {total: 1, progressing: 1, available: 1, degraded: 1, applied: 1, desiredTotal: 1, updated: 1}
  placementSummary: [{name: a, availableDecisionGroups: a, summary: {total: 1, progressing: 1, available: 1, degraded: 1, applied: 1, desiredTotal: 1, updated: 1}}]
`}
