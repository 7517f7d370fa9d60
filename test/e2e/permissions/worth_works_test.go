// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"fmt"
	"strings"

	"github.com/clusterhub/clusterhub/pkg/registration"
)

// workOf returns a ManifestWork with labels and finalizers.
func workOf(namespace, name, labels, finalizers string) string {
	return fmt.Sprintf(`{apiVersion: work.open-cluster-management.io/v1, kind: ManifestWork,
		metadata: {namespace: %s, name: %s, labels: {%s}, finalizers: [%s]},
		spec: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: a}}]}}}`, namespace, name, labels, finalizers)
}

// revisionOf returns a ManifestWorkReplicaSetRevision with a template that the set never had.
func revisionOf(namespace, set string) string {
	return fmt.Sprintf(`{apiVersion: work.open-cluster-management.io/v1alpha1, kind: ManifestWorkReplicaSetRevision,
		metadata: {namespace: %[1]s, name: %[2]s-1, labels: {work.open-cluster-management.io/manifestworkreplicaset: %[1]s.%[2]s}, ownerReferences: [
		{apiVersion: work.open-cluster-management.io/v1alpha1, kind: ManifestWorkReplicaSet, name: %[2]s, uid: forged}]},
		spec: {replicaSet: %[2]s, replicaSetUID: forged, revision: 1, manifestWorkTemplate: {workload: {manifests: [
		{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: a}}]}}}}`, namespace, set)
}

// ofReplicaSet returns the labels of the works of a ManifestWorkReplicaSet whose hash is this letter.
func ofReplicaSet(hash string) string {
	return "work.open-cluster-management.io/ownerkey-hash: " + strings.Repeat(hash, 32) + ", work.open-cluster-management.io/placementname: web"
}

// ofEdge returns the label of the work of an EdgePlacement whose hash is this letter.
func ofEdge(hash string) string {
	return "edge.clusterhub.dev/placement-hash: " + strings.Repeat(hash, 32)
}

// quoted returns a list of labels as JSON.
func quoted(labels string) string {
	return `"` + strings.NewReplacer(": ", `":"`, ", ", `","`).Replace(labels) + `"`
}

// tryWorks tries to misuse the rights of hub-controller-manager on works. The cluster c1 is accepted.
func (w *worth) tryWorks(as actor) {
	w.Helper()
	const replicaSet = `{apiVersion: work.open-cluster-management.io/v1alpha1, kind: ManifestWorkReplicaSet, metadata: {namespace: worked, name: web},
		spec: {placementRefs: [{name: web}], manifestWorkTemplate: {workload: {manifests: [
		{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: a}}]}}}}`
	workOfTeam, workOfSet := workOf("adopted", "team", "", ""), workOf("adopted", "web", ofReplicaSet("a"), "example.com/held")
	admin := w.asAdmin()
	admin.create(namespaceOf("worked", "", ""))
	admin.create(workOfTeam)
	elsewhere := workOf("worked", "team", "", "")
	admin.create(elsewhere)
	admin.create(workOfSet)
	workOfEdge := workOf("adopted", "edge", ofEdge("a"), "example.com/held")
	admin.create(workOfEdge)
	admin.create(replicaSet)
	// The work is being deleted, and waits for an agent.
	agents := registration.WorkFinalizer + ", example.com/held"
	ending, endingElsewhere := workOf("adopted", "ending", "", agents), workOf("worked", "ending", "", agents)
	for _, work := range []string{ending, endingElsewhere} {
		admin.create(work)
		if err := admin.Delete(w.Context(), admin.object(work)); err != nil {
			w.Fatal(err)
		}
	}
	const release = `{"metadata":{"finalizers":["example.com/held"]%s}%s}`
	asOther := strings.Replace(workOf("adopted", "eve", ofEdge("b"), ""), "spec: {", "spec: {executor: {subject: {type: ServiceAccount, serviceAccount: {namespace: a, name: b}}}, ", 1)
	garbage := strings.Replace(workOf("adopted", "eve", ofReplicaSet("b"), ""), "finalizers: []", "ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: gone, uid: gone}]", 1)
	for what, err := range map[string]error{
		"put something on a cluster":       as.create(workOf("adopted", "eve", "", "")),
		"… by the label of a set alone":    as.create(workOf("adopted", "eve", "work.open-cluster-management.io/manifestworkreplicaset: worked.web", "")),
		"… in a namespace of no cluster":   as.create(workOf("worked", "eve", ofReplicaSet("b"), "")),
		"… for good":                       as.create(workOf("adopted", "eve", ofReplicaSet("b"), "example.com/eve")),
		"… that is collected as garbage":   as.create(garbage),
		"change a work of a team":          as.patch(workOfTeam, `{"spec":{"workload":{"manifests":[{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","namespace":"b"}}]}}}`),
		"take a work of a team over":       as.patch(workOfTeam, `{"metadata":{"labels":{`+quoted(ofReplicaSet("b"))+`}}}`),
		"give a work to another set":       as.patch(workOfSet, `{"metadata":{"labels":{`+quoted(ofReplicaSet("b"))+`}}}`),
		"let what a work has made stay":    as.patch(workOfSet, `{"metadata":{"finalizers":[]}}`),
		"have a work collected as garbage": as.patch(workOfSet, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"gone","uid":"gone"}]}}`),
		"delete a work of no cluster":      as.delete(elsewhere),
		"an edge work in no cluster":       as.create(workOf("worked", "eve", ofEdge("b"), "")),
		"an edge work that is another's":   as.create(asOther),
		"an edge work of a set":            as.create(workOf("adopted", "eve", ofEdge("b")+", "+ofReplicaSet("b"), "")),
		"an edge work without its hash":    as.create(workOf("adopted", "eve", "edge.clusterhub.dev/placement-hash: b", "")),
		"take a team's work for edge":      as.patch(workOfTeam, `{"metadata":{"labels":{`+quoted(ofEdge("b"))+`}}}`),
		"take a set's work for edge":       as.patch(workOfSet, `{"metadata":{"labels":{`+quoted(ofEdge("b"))+`}}}`),
		"give an edge work to another":     as.patch(workOfEdge, `{"metadata":{"labels":{`+quoted(ofEdge("b"))+`}}}`),
		"give an edge work to a set":       as.patch(workOfEdge, `{"metadata":{"labels":{`+quoted(ofReplicaSet("b"))+`}}}`),
		"let what an edge work made stay":  as.patch(workOfEdge, `{"metadata":{"finalizers":[]}}`),
		"let go of what others hold":       as.patch(ending, `{"metadata":{"finalizers":[]}}`),
		"let go of it in no cluster":       as.patch(endingElsewhere, fmt.Sprintf(release, "", "")),
		"change what it lets go of":        as.patch(ending, fmt.Sprintf(release, "", `,"spec":{"deleteOption":{"propagationPolicy":"Orphan"}}`)),
		"label what it lets go of":         as.patch(ending, fmt.Sprintf(release, `,"labels":{"a":"b"}`, "")),
		"annotate what it lets go of":      as.patch(ending, fmt.Sprintf(release, `,"annotations":{"a":"b"}`, "")),
		"say that a work is applied":       as.patchStatus(workOfSet, `{"status":{"conditions":[]}}`),
		"be the author of a replica set":   as.patch(replicaSet, `{"spec":{"cascadeDeletionPolicy":"Foreground"}}`),
		"be gone back to":                  as.create(revisionOf("worked", "web")),
		"label a replica set":              as.patch(replicaSet, `{"metadata":{"labels":{"a":"b"}}}`),
	} {
		w.want(managerSA, what, false, err)
	}
	for what, err := range map[string]error{
		"let go of a work in place of an agent": as.patch(ending, fmt.Sprintf(release, "", "")),
		"make a work of a replica set":          as.create(workOf("adopted", "web-2", ofReplicaSet("b"), "")),
		"change one":                            as.patch(workOfSet, `{"spec":{"workload":{"manifests":[{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","namespace":"b"}}]}}}`),
		"hold a replica set":                    as.patch(replicaSet, `{"metadata":{"finalizers":["work.open-cluster-management.io/manifest-work-cleanup"]}}`),
		"delete one":                            as.delete(workOfSet),
		"make a work of edge":                   as.create(workOf("adopted", "edge-2", ofEdge("b"), "")),
		"change one of edge":                    as.patch(workOfEdge, `{"spec":{"workload":{"manifests":[{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","namespace":"b"}}]}}}`),
		"delete one of edge":                    as.delete(workOfEdge),
		// The works of clusters that it deletes are deleted, too.
		"delete a work of a team": as.delete(workOfTeam),
	} {
		w.want(managerSA, what, true, err)
	}
}
