// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	"encoding/csv"
	"fmt"
	"maps"
	"os"
	"testing"
)

// elsewhere are the topics that are not pure logic: rejections by hub-apiserver, requests of an agent, and replica sets.
var elsewhere = map[string]bool{
	"admission": true, "admission-executor": true, "apply": true, "labels": true, "finalizer": true, "delete": true, "orphan": true,
	"executor": true, "eviction": true, "restore": true, "ttl": true, "replicaset": true,
}

// notPure are rows of the other topics: conflicts of field managers, and when an object is read.
var notPure = map[string]bool{"W034": true, "W045": true}

// TestCases has a test for every row of the table that is about pure logic.
func TestCases(t *testing.T) {
	file, err := os.Open("testdata/work-cases.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	reader := csv.NewReader(file)
	reader.Comma, reader.Comment, reader.LazyQuotes = '\t', '#', true
	rows, err := reader.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	tests := maps.Clone(cases)
	for _, row := range rows[1:] {
		id, topic := row[0], row[1]
		test := tests[id]
		delete(tests, id)
		switch {
		case test == nil && !elsewhere[topic] && !notPure[id]:
			t.Errorf("no test for %s: %s → %s → %s", id, row[2], row[3], row[4])
		case test != nil:
			t.Run(id, func(t *testing.T) {
				t.Logf("%s\n%s\n→ %s", row[2], row[3], row[4])
				test(t)
			})
		}
	}
	for id := range tests {
		t.Errorf("the table has no row %s", id)
	}
}

const (
	cm1        = "{apiVersion: v1, kind: ConfigMap, metadata: {name: cm1, namespace: ns}, data: {a: b}}"
	cm2        = "{apiVersion: v1, kind: ConfigMap, metadata: {name: cm2, namespace: ns}, data: {a: b}}"
	cm3        = "{apiVersion: v1, kind: ConfigMap, metadata: {name: cm3, namespace: ns}, data: {a: b}}"
	binding    = "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: binding, namespace: ns}}"
	role       = "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: role, namespace: ns}}"
	account    = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: account, namespace: ns}}"
	job        = "{apiVersion: batch/v1, kind: Job, metadata: {name: job, namespace: ns}}"
	pod        = "{apiVersion: v1, kind: Pod, metadata: {name: pod, namespace: ns}}"
	configMaps = "resourceIdentifier: {resource: configmaps, namespace: ns, name: '%s'}\n"
	jobs       = "resourceIdentifier: {group: batch, resource: jobs, namespace: ns, name: job}\n"
	deploys    = "resourceIdentifier: {group: apps, resource: deployments, namespace: ns, name: 'deploy*'}\n"
)

func deployment(name string, replicas int) string {
	return fmt.Sprintf("{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s, namespace: ns}, spec: {replicas: %d}}", name, replicas)
}

// scaled returns a Deployment with the given numbers in its status: ready, replicas, available.
func scaled(name string, ready, replicas, available int) string {
	return fmt.Sprintf("{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s, namespace: ns}, status: {readyReplicas: %d, replicas: %d, availableReplicas: %d, conditions: [{type: Available, status: 'True'}]}}",
		name, ready, replicas, available)
}

func withStatus(kind, name, status string) string {
	return fmt.Sprintf("{apiVersion: %s, metadata: {name: %s, namespace: ns}, status: %s}", kind, name, status)
}

const (
	complete    = "True AppliedManifestComplete: Apply manifest complete (%d)"
	workApplied = "True AppliedManifestWorkComplete: Apply manifest work complete (%d)"
)

func at(text string, generation int) string { return fmt.Sprintf(text, generation) }
