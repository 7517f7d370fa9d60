// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// badRequest is a request that must be rejected.
type badRequest struct {
	what, verb, path, query, contentType, accept, body string
	// says is contained in the response; code is one of these.
	says  string
	codes []int
}

const (
	clustersPath = "/apis/cluster.open-cluster-management.io/v1/managedclusters"
	setsPath     = "/apis/cluster.open-cluster-management.io/v1beta1/managedclustersets"
	setsV2Path   = "/apis/cluster.open-cluster-management.io/v1beta2/managedclustersets"
	membersPath  = "/apis/view.clusterhub.dev/v1alpha1/clustersetmembers"
)

func clusterBody(inside string) string {
	return `{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedCluster",` + inside + `}`
}

func setBody(version, selector string) string {
	return `{"apiVersion":"cluster.open-cluster-management.io/` + version + `","kind":"ManagedClusterSet","metadata":{"name":"bad"},"spec":{"clusterSelector":` + selector + `}}`
}

func badRequests(existing string) []badRequest {
	long := strings.Repeat("x", 64)
	all := []badRequest{
		{what: "no JSON", body: `{"apiVersion`, codes: []int{400}},
		{what: "no object", body: `[]`, codes: []int{400}},
		{what: "nothing", body: ` `, codes: []int{400}},
		{what: "another kind", body: `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}`, codes: []int{400}},
		{what: "an unknown field", query: "fieldValidation=Strict", body: clusterBody(`"metadata":{"name":"a"},"spec":{"hubAcceptClient":true}`), says: "spec.hubAcceptClient", codes: []int{400}},
		{what: "a field twice", query: "fieldValidation=Strict", body: clusterBody(`"metadata":{"name":"a"},"spec":{"leaseDurationSeconds":1,"leaseDurationSeconds":2}`), says: "leaseDurationSeconds", codes: []int{400}},
		{what: "a string for a number", body: clusterBody(`"metadata":{"name":"a"},"spec":{"leaseDurationSeconds":"x"}`), says: "leaseDurationSeconds", codes: []int{400}},
		{what: "a negative lease", body: clusterBody(`"metadata":{"name":"a"},"spec":{"leaseDurationSeconds":-1}`), says: "spec.leaseDurationSeconds", codes: []int{422}},
		{what: "a name with a dot", body: clusterBody(`"metadata":{"name":"a.b"}`), says: "metadata.name", codes: []int{422}},
		{what: "a name in capitals", body: clusterBody(`"metadata":{"name":"Cluster"}`), says: "metadata.name", codes: []int{422}},
		{what: "a name too long", body: clusterBody(`"metadata":{"name":"` + long + `"}`), says: "metadata.name", codes: []int{422}},
		{what: "no name", body: clusterBody(`"metadata":{}`), says: "name", codes: []int{422, 400}},
		{what: "a generated name that is none", body: clusterBody(`"metadata":{"generateName":"A_"}`), says: "metadata", codes: []int{422}},
		{what: "a label too long", body: clusterBody(`"metadata":{"name":"a","labels":{"a":"` + long + `"}}`), says: "metadata.labels", codes: []int{422}},
		{what: "a label key of nonsense", body: clusterBody(`"metadata":{"name":"a","labels":{"a b":"x"}}`), says: "metadata.labels", codes: []int{422}},
		{what: "a label with NUL", body: clusterBody(`"metadata":{"name":"a","labels":{"\u0000access":""}}`), says: "metadata.labels", codes: []int{422}},
		{what: "annotations of 300 KB", body: clusterBody(`"metadata":{"name":"a","annotations":{"a":"` + strings.Repeat("y", 300<<10) + `"}}`), says: "metadata.annotations", codes: []int{422}},
		{what: "4 MB", body: clusterBody(`"metadata":{"name":"a","annotations":{"a":"` + strings.Repeat("y", 4<<20) + `"}}`), codes: []int{413}},
		{what: "deep nesting", body: clusterBody(`"metadata":{"name":"a"},"spec":` + strings.Repeat(`{"a":`, 20000) + "1" + strings.Repeat("}", 20000)), codes: []int{400}},
		{what: "a taint without a key", body: clusterBody(`"metadata":{"name":"a"},"spec":{"taints":[{"effect":"NoSelect"}]}`), says: "spec.taints[0].key", codes: []int{422}},
		{what: "a taint of no effect", body: clusterBody(`"metadata":{"name":"a"},"spec":{"taints":[{"key":"a","effect":"NoWay"}]}`), says: "spec.taints[0].effect", codes: []int{422}},
		{what: "an URL without a scheme", body: clusterBody(`"metadata":{"name":"a"},"spec":{"managedClusterClientConfigs":[{"url":"nowhere"}]}`), says: "spec.managedClusterClientConfigs[0].url", codes: []int{422}},
		{what: "form data", contentType: "application/x-www-form-urlencoded", body: "a=b", codes: []int{415}},
		{what: "protobuf", contentType: "application/vnd.kubernetes.protobuf", body: "k8s\x00", codes: []int{415}},

		{what: "a selector type of nonsense", path: setsPath, body: setBody("v1beta1", `{"selectorType":"Guess"}`), says: "spec.clusterSelector.selectorType", codes: []int{422}},
		{what: "an exclusive label without one", path: setsPath, body: setBody("v1beta1", `{"selectorType":"ExclusiveLabel"}`), says: "spec.clusterSelector.exclusiveLabel", codes: []int{422}},
		{what: "an exclusive label that is not reserved", path: setsPath, body: setBody("v1beta1", `{"selectorType":"ExclusiveLabel","exclusiveLabel":{"key":"team","value":"a"}}`), says: "spec.clusterSelector.exclusiveLabel.key", codes: []int{422}},
		{what: "an exclusive label of a bad value", path: setsPath, body: setBody("v1beta1", `{"selectorType":"ExclusiveLabel","exclusiveLabel":{"key":"info.open-cluster-management.io/a","value":"a/b"}}`), says: "spec.clusterSelector.exclusiveLabel.value", codes: []int{422}},
		{what: "a label selector with an exclusive label", path: setsPath, body: setBody("v1beta1", `{"selectorType":"LabelSelector","labelSelector":{},"exclusiveLabel":{"key":"info.open-cluster-management.io/a","value":"a"}}`), says: "spec.clusterSelector.exclusiveLabel", codes: []int{422}},
		{what: "the implied label with a selector", path: setsV2Path, body: setBody("v1beta2", `{"selectorType":"ExclusiveClusterSetLabel","labelSelector":{}}`), says: "spec.clusterSelector.labelSelector", codes: []int{422}},
		{what: "an operator of nonsense", path: setsV2Path, body: setBody("v1beta2", `{"selectorType":"LabelSelector","labelSelector":{"matchExpressions":[{"key":"a","operator":"Near"}]}}`), says: "operator", codes: []int{422}},
		{what: "a bool for a label", path: setsV2Path, body: setBody("v1beta2", `{"selectorType":"LabelSelector","labelSelector":{"matchLabels":{"a":true}}}`), says: "matchLabels", codes: []int{400}},

		{what: "a label selector of nonsense", verb: "GET", query: "labelSelector=" + url.QueryEscape("a in"), codes: []int{400}},
		{what: "a field selector of nonsense", verb: "GET", query: "fieldSelector=spec.nothing%3Da", says: "spec.nothing", codes: []int{400}},
		{what: "a version of nonsense", verb: "GET", query: "resourceVersion=x", codes: []int{400, 422}},
		{what: "a continuation of nonsense", verb: "GET", query: "limit=1&continue=x", codes: []int{400}},
		{what: "an answer of nonsense", verb: "GET", accept: "text/html", codes: []int{406}},
		{what: "an answer in protobuf", verb: "GET", accept: "application/vnd.kubernetes.protobuf", codes: []int{406}},
		{what: "a body too much", verb: "PUT", path: clustersPath + "/" + existing, body: clusterBody(`"metadata":{"name":"other"}`), codes: []int{400}},
		{what: "a version of nonsense in an update", verb: "PUT", path: clustersPath + "/" + existing, body: clusterBody(`"metadata":{"name":"` + existing + `","resourceVersion":"x"}`), codes: []int{400, 409, 422}},
		{what: "a patch of no type", verb: "PATCH", path: clustersPath + "/" + existing, contentType: "application/json", body: `{}`, codes: []int{415}},
		{what: "a JSON patch that is none", verb: "PATCH", path: clustersPath + "/" + existing, contentType: "application/json-patch+json", body: `{"op":"add"}`, codes: []int{400}},
		{what: "a JSON patch of what is not there", verb: "PATCH", path: clustersPath + "/" + existing, contentType: "application/json-patch+json", body: `[{"op":"remove","path":"/spec/nothing"}]`, codes: []int{422, 400}},
		{what: "a JSON patch of 20,000 operations", verb: "PATCH", path: clustersPath + "/" + existing, contentType: "application/json-patch+json", body: "[" + strings.TrimSuffix(strings.Repeat(`{"op":"test","path":"/kind","value":"ManagedCluster"},`, 20000), ",") + "]", codes: []int{413, 422}},
		{what: "an apply without a manager", verb: "PATCH", path: clustersPath + "/" + existing, contentType: "application/apply-patch+yaml", body: clusterBody(`"metadata":{"name":"` + existing + `"}`), codes: []int{400, 422}},
		{what: "an apply of no YAML", verb: "PATCH", path: clustersPath + "/" + existing, query: "fieldManager=x", contentType: "application/apply-patch+yaml", body: "\t:", codes: []int{400}},
		{what: "a status of what is not there", verb: "PUT", path: clustersPath + "/nobody/status", body: clusterBody(`"metadata":{"name":"nobody"}`), codes: []int{404}},
		{what: "an accept of what is not there", verb: "PUT", path: clustersPath + "/nobody/accept", body: clusterBody(`"metadata":{"name":"nobody"}`), codes: []int{404}},
		{what: "a subresource of nonsense", verb: "GET", path: clustersPath + "/" + existing + "/nothing", codes: []int{404}},
	}
	// Requests are read up to 3 MB, and the limit of a field may be far lower: neither is a server error.
	for what, size := range map[string]int{"4 MB": 4 << 20, "2 MB": 2 << 20} {
		spec := `"spec":{"managedClusterClientConfigs":[{"url":"https://a","caBundle":"` + strings.Repeat("QUFB", size/4) + `"}]}`
		whole := clusterBody(`"metadata":{"name":"` + existing + `"},` + spec)
		all = append(all,
			badRequest{what: "a cluster of " + what, body: clusterBody(`"metadata":{"name":"large"},` + spec), codes: []int{413, 422}},
			badRequest{what: "a merge patch of " + what, verb: "PATCH", path: clustersPath + "/" + existing, contentType: "application/merge-patch+json", body: "{" + spec + "}", codes: []int{413, 422}},
			badRequest{what: "an apply of " + what, verb: "PATCH", path: clustersPath + "/" + existing, query: "fieldManager=x", contentType: "application/apply-patch+yaml", body: whole, codes: []int{413, 422}})
	}
	for _, query := range []string{"labelSelector=" + url.QueryEscape("a in"), "fieldSelector=status.accepted%3Dtrue",
		"resourceVersion=x", "limit=1&continue=x", "resourceVersionMatch=Exact", "sendInitialEvents=true", "watch=1&sendInitialEvents=true"} {
		all = append(all, badRequest{what: "members, " + query, verb: "GET", path: membersPath, query: query, codes: []int{400, 422}})
	}
	for _, name := range []string{"a", "a.", ".b", "..", "%2e%2e", "a%00.b", "a%2Fb.c", strings.Repeat("a", 300) + ".b", "%00access"} {
		all = append(all, badRequest{what: "the member " + name, verb: "GET", path: membersPath + "/" + name, codes: []int{404, 400}})
	}
	return all
}

// TestBadInput_Returns4xx sends each request to the front and to hub-apiserver itself.
func TestBadInput_Returns4xx(t *testing.T) {
	existing := harness.Unique("existing")
	before := harness.NewManagedCluster(t, existing, nil)
	for name, client := range map[string]interface {
		do(t *testing.T, r badRequest) (int, string)
	}{"front": rawClient{harness.RESTClient(t, harness.Hub(t).AdminConfig())}, "direct": rawClient{harness.RESTClient(t, harness.Hub(t).HubAPIServerConfig(0))}} {
		for _, r := range badRequests(existing) {
			t.Run(name+"/"+r.what, func(t *testing.T) {
				code, answer := client.do(t, r)
				ok := false
				for _, c := range r.codes {
					ok = ok || code == c
				}
				if !ok || !strings.Contains(answer, r.says) {
					t.Errorf("got %d %s, want one of %v that says %q", code, answer, r.codes, r.says)
				}
			})
		}
	}
	after := harness.Must(harness.Admin(t).ClusterV1().ManagedClusters().Get(t.Context(), existing, metav1.GetOptions{}))(t)
	if after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the cluster has changed: %+v", after)
	}
	for replica := range 2 {
		if _, err := harness.Ours(t, harness.Hub(t).HubAPIServerConfig(replica)).ClusterV1().ManagedClusters().List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Errorf("replica %d: %v", replica, err)
		}
	}
	if pids := fmt.Sprint(harness.Hub(t).PIDs()); !strings.Contains(pids, "hub-apiserver") {
		t.Errorf("hub-apiserver has ended: %s", pids)
	}
}
