// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/edge"
)

// permissions returns the audit annotations about permissions, without the prefix of the keys.
func (a answer) permissions() map[string]string {
	told := map[string]string{}
	for key, value := range a.audited {
		if key, ok := strings.CutPrefix(key, permission.AnnotationPrefix); ok {
			told[key] = value
		}
	}
	return told
}

// TestAudit_ViewPermissionsAreRecorded verifies that decisions of storages by a permission of the user are recorded for auditors like
// those of plugins.
func TestAudit_ViewPermissionsAreRecorded(t *testing.T) {
	h := withFleet(t)
	const of, patch, sets = " managedclusters.cluster.open-cluster-management.io ", `{"metadata":{"labels":{"a":"b"}}}`, " managedclustersets.cluster.open-cluster-management.io/clusters "
	for name, test := range map[string]struct {
		who, method, cluster string
		code                 int
		want                 map[string]string
	}{
		"read by a set":          {"bob", http.MethodGet, "c1", 200, map[string]string{"clusterview-get": "allowed: get" + sets + `"mine"`}},
		"read by its name":       {"nan", http.MethodGet, "c1", 200, map[string]string{"clusterview-get": "allowed: get" + of + `"c1"`}},
		"not seen":               {"nan", http.MethodGet, "c2", 403, map[string]string{"clusterview-get": "refused: get" + of + `"c2"`}},
		"not seen, with a right": {"bob", http.MethodGet, "o1", 403, map[string]string{"clusterview-get": "refused: get" + of + `"o1"`}},
		"written by a set": {"ann", http.MethodPatch, "c1", 200, map[string]string{
			"clusterview-get": "allowed: get" + sets + `"mine"`, "clusterview-write": "allowed: patch" + sets + `"mine"`}},
		"written by its name": {"nan", http.MethodPatch, "c1", 200, map[string]string{
			"clusterview-get": "allowed: get" + of + `"c1"`, "clusterview-write": "allowed: patch" + of + `"c1"`}},
		"seen and not written": {"bob", http.MethodPatch, "c1", 403, map[string]string{
			"clusterview-get": "allowed: get" + sets + `"mine"`, "clusterview-write": "refused: patch" + of + `"c1"`}},
	} {
		got := h.do(test.who, test.method, viewedPath+"/"+test.cluster, map[string]string{http.MethodPatch: mergeType}[test.method],
			map[string]string{http.MethodPatch: patch}[test.method])
		if told := got.permissions(); got.code != test.code || !maps.Equal(told, test.want) {
			t.Errorf("%s: %d, auditors are told %v, want %d and %v", name, got.code, told, test.code, test.want)
		}
	}
	const members = "/apis/view.clusterhub.dev/v1alpha1/clustersetmembers/c1.mine"
	for who, want := range map[string]string{"xan": "allowed", "bob": "refused"} {
		if told := h.do(who, http.MethodGet, members, "", "").permissions(); told["clusterview-get"] != want+`: get managedclustersets.cluster.open-cluster-management.io "mine"` {
			t.Errorf("of a member that %s reads, auditors are told %v", who, told)
		}
	}
}

func TestAudit_DeployCheckPermissionsAreRecorded(t *testing.T) {
	h := newEdge(t)
	const policy = `get deploymentpolicies.edge.clusterhub.dev "web" in "shop"`
	service := `get edgeservices.edge.clusterhub.dev "` + edge.ServiceName("db", "1.0.0", "*") + `" in "tools"`
	for name, test := range map[string]struct{ who, spec, want string }{
		"a policy that is there":        {"dev", `{"policyName":"web"}`, "allowed: " + policy},
		"one that the user may not get": {"asking", `{"policyName":"web"}`, "refused: " + policy},
		"a service of another":          {"one", `{"policy":` + policyOf("db", "tools", "") + `}`, "allowed: " + service},
		// This is recorded like a service that does not exist.
		"a service that the user may not get": {"dev", `{"policy":` + policyOf("db", "tools", "") + `}`, ""},
	} {
		_, got := h.check(test.who, test.spec)
		if told := got.permissions(); told["deploycheck"] != test.want {
			t.Errorf("%s: %d, auditors are told %v, want %s", name, got.code, told, test.want)
		}
	}
}
