// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

const (
	unavailable = "503"
	notFound    = "404"
	forbidden   = "403"
)

// groupsOf returns the list of groups of a cluster that serves a group in some versions, besides its own.
func groupsOf(group string, versions ...string) string {
	text := ""
	for i, v := range versions {
		text += fmt.Sprintf(`%s{"groupVersion":"%s/%s","version":%[3]q}`, map[bool]string{true: ","}[i > 0], group, v)
	}
	return fmt.Sprintf(`{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"apiregistration.k8s.io","versions":[{"groupVersion":"apiregistration.k8s.io/v1","version":"v1"}]},`+
		`{"name":%q,"versions":[%s]}]}`, group, text)
}

func resourcesOf(groupVersion string, names ...string) string {
	text := ""
	for i, name := range names {
		text += fmt.Sprintf(`%s{"name":%q,"namespaced":true,"kind":"Any","verbs":["get"]}`, map[bool]string{true: ","}[i > 0], name)
	}
	return fmt.Sprintf(`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":%q,"resources":[%s]}`, groupVersion, text)
}

// TestAttack_MissingResponseIsNotAbsence: a resource counts as not served only if the cluster has answered all requests. Otherwise an agent would treat
// existing objects as gone, among them those that stay when their work is deleted.
func TestAttack_MissingResponseIsNotAbsence(t *testing.T) {
	const none, fails = "", "<error>"
	widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	for name, row := range map[string]struct {
		resource schema.GroupVersionResource
		answers  map[string]string
		want     string
	}{
		"the cluster has no such group": {answers: map[string]string{"/apis": groupsOf("another.example.com", "v1")}, want: none},
		"no version has the resource": {answers: map[string]string{"/apis": groupsOf("example.com", "v1", "v2"),
			"/apis/example.com/v1": resourcesOf("example.com/v1", "gadgets"), "/apis/example.com/v2": resourcesOf("example.com/v2", "widgets/status")}, want: none},
		"the version is served": {answers: map[string]string{"/apis": groupsOf("example.com", "v2", "v1"),
			"/apis/example.com/v1": resourcesOf("example.com/v1", "widgets"), "/apis/example.com/v2": resourcesOf("example.com/v2", "widgets")}, want: "v1"},
		"another version is served": {answers: map[string]string{"/apis": groupsOf("example.com", "v1", "v2"),
			"/apis/example.com/v1": resourcesOf("example.com/v1", "gadgets"), "/apis/example.com/v2": resourcesOf("example.com/v2", "widgets")}, want: "v2"},
		"another version is served, and one does not answer": {answers: map[string]string{"/apis": groupsOf("example.com", "v1", "v2"),
			"/apis/example.com/v1": unavailable, "/apis/example.com/v2": resourcesOf("example.com/v2", "widgets")}, want: "v2"},

		"a version does not answer": {answers: map[string]string{"/apis": groupsOf("example.com", "v1", "v2"),
			"/apis/example.com/v1": resourcesOf("example.com/v1", "gadgets"), "/apis/example.com/v2": unavailable}, want: fails},
		"a version is not found": {answers: map[string]string{"/apis": groupsOf("example.com", "v1"), "/apis/example.com/v1": notFound}, want: fails},
		"a version is forbidden": {answers: map[string]string{"/apis": groupsOf("example.com", "v1"), "/apis/example.com/v1": forbidden}, want: fails},
		"a version has nothing, as long as its server starts": {answers: map[string]string{"/apis": groupsOf("example.com", "v1"),
			"/apis/example.com/v1": resourcesOf("example.com/v1")}, want: fails},
		"a version answers with another one": {answers: map[string]string{"/apis": groupsOf("example.com", "v1"),
			"/apis/example.com/v1": resourcesOf("example.com/v2", "gadgets")}, want: fails},
		"a version answers with nothing":        {answers: map[string]string{"/apis": groupsOf("example.com", "v1"), "/apis/example.com/v1": "{}"}, want: fails},
		"a version answers with a page":         {answers: map[string]string{"/apis": groupsOf("example.com", "v1"), "/apis/example.com/v1": "<html></html>"}, want: fails},
		"the group has no versions":             {answers: map[string]string{"/apis": groupsOf("example.com")}, want: fails},
		"the groups are not found":              {answers: map[string]string{"/apis": notFound}, want: fails},
		"the groups are forbidden":              {answers: map[string]string{"/apis": forbidden}, want: fails},
		"the groups do not answer":              {answers: map[string]string{"/apis": unavailable}, want: fails},
		"there are no groups":                   {answers: map[string]string{"/apis": `{"kind":"APIGroupList","apiVersion":"v1"}`}, want: fails},
		"the answer about groups is of no kind": {answers: map[string]string{"/apis": `{}`}, want: fails},

		"a resource of the core group": {resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
			answers: map[string]string{"/api/v1": resourcesOf("v1", "configmaps")}, want: "v1"},
		"none of the core group":               {resource: schema.GroupVersionResource{Version: "v1", Resource: "none"}, answers: map[string]string{"/api/v1": resourcesOf("v1", "configmaps")}, want: none},
		"the core group that is not there":     {resource: schema.GroupVersionResource{Version: "v1", Resource: "none"}, answers: map[string]string{"/api/v1": notFound}, want: fails},
		"the core group that may not be asked": {resource: schema.GroupVersionResource{Version: "v1", Resource: "none"}, answers: map[string]string{"/api/v1": forbidden}, want: fails},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				answer := cmp.Or(row.answers[r.URL.Path], notFound)
				for text, code := range map[string]int{unavailable: 503, notFound: 404, forbidden: 403} {
					if answer == text {
						http.Error(w, "no", code)
						return
					}
				}
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprint(w, answer)
			}))
			defer server.Close()
			resource := row.resource
			if resource.Empty() {
				resource = widgets
			}
			k := New(discovery.NewDiscoveryClientForConfigOrDie(&rest.Config{Host: server.URL}))
			got, err := k.Live(t.Context(), resource)
			if err != nil {
				got = fails
			}
			if got != row.want {
				t.Errorf("it is served in %q, want %q (%v)", got, row.want, err)
			}
		})
	}
}
