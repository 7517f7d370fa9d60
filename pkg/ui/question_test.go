// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
)

func TestAsk_AllowsRequestsOfPage(t *testing.T) {
	for asked, want := range map[string]string{
		"GET /version":                           "/version",
		"GET /readyz":                            "/readyz",
		"GET /readyz?verbose":                    "/readyz?verbose=",
		"GET /api":                               "/api",
		"GET /apis":                              "/apis",
		"GET /api/v1":                            "/api/v1",
		"GET /apis/view.clusterhub.dev":          "/apis/view.clusterhub.dev",
		"GET /apis/view.clusterhub.dev/v1alpha1": "/apis/view.clusterhub.dev/v1alpha1",
		"GET /apis/view.clusterhub.dev/v1alpha1/clustersetmembers?limit=1&watch=1": "/apis/view.clusterhub.dev/v1alpha1/clustersetmembers?limit=1&watch=1",
		"GET /apis/cluster.open-cluster-management.io/v1/managedclusters/paris-1":  "/apis/cluster.open-cluster-management.io/v1/managedclusters/paris-1",
		"GET /api/v1/namespaces/a": "/api/v1/namespaces/a",
		"GET /api/v1/namespaces/a/events?fieldSelector=involvedObject.name%3Da":                            "/api/v1/namespaces/a/events?fieldSelector=involvedObject.name%3Da",
		"GET /apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Amaster":                              "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:master",
		"GET /apis/coordination.k8s.io/v1/namespaces/a/leases/b":                                           "/apis/coordination.k8s.io/v1/namespaces/a/leases/b",
		"POST /apis/authorization.k8s.io/v1/selfsubjectrulesreviews":                                       "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
		"POST /apis/edge.clusterhub.dev/v1alpha1/namespaces/a/deploychecks":                                "/apis/edge.clusterhub.dev/v1alpha1/namespaces/a/deploychecks",
		"GET /apis/cluster.open-cluster-management.io/v1beta1/namespaces/a/placements/p/explain?cluster=c": "/apis/cluster.open-cluster-management.io/v1beta1/namespaces/a/placements/p/explain?cluster=c",
	} {
		method, uri, _ := strings.Cut(asked, " ")
		at, query, _ := strings.Cut(uri, "?")
		q, refused := ask(method, at, query)
		if refused != nil {
			t.Errorf("%s: %s", asked, refused.Message)
			continue
		}
		got := (&url.URL{Path: q.path, RawQuery: q.query.Encode()}).String()
		if got != want || q.method != method {
			t.Errorf("%s: the hub is asked %s %s, not %s", asked, q.method, got, want)
		}
	}
}

// attacks are requests that would change something, read secrets, or reach something else, with the codes of their responses.
var attacks = map[string]int{
	"PUT /apis/cluster.open-cluster-management.io/v1/managedclusters/a":    405,
	"PATCH /apis/cluster.open-cluster-management.io/v1/managedclusters/a":  405,
	"DELETE /apis/cluster.open-cluster-management.io/v1/managedclusters/a": 405,
	"DELETE /apis/cluster.open-cluster-management.io/v1/managedclusters":   405,
	"HEAD /version":    405,
	"OPTIONS /version": 405,
	"get /version":     405,
	"POST /apis/cluster.open-cluster-management.io/v1/managedclusters":                        403,
	"POST /apis/clusters.openmcp.cloud/v1alpha1/namespaces/a/accessrequests":                  403,
	"POST /apis/clusters.openmcp.cloud/v1alpha1/namespaces/a/accessrequests/b/token":          403,
	"POST /apis/authorization.k8s.io/v1/subjectaccessreviews":                                 403,
	"POST /apis/authorization.k8s.io/v1/namespaces/a/localsubjectaccessreviews":               403,
	"POST /apis/authorization.k8s.io/v1/namespaces/a/selfsubjectaccessreviews":                403,
	"POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews/a":                           403,
	"POST /apis/authentication.k8s.io/v1/tokenreviews":                                        403,
	"POST /apis/edge.clusterhub.dev/v1alpha1/deploychecks":                                    403,
	"POST /apis/edge.clusterhub.dev/v1alpha1/namespaces/a/edgeservices":                       403,
	"POST /apis/cluster.open-cluster-management.io/v1beta1/namespaces/a/placements/p/explain": 403,
	"POST /api/v1/namespaces":                                                                  403,
	"POST /api/v1/namespaces/a/serviceaccounts/b/token":                                        403,
	"POST /version":                                                                            403,
	"GET /api/v1/secrets":                                                                      403,
	"GET /api/v1/namespaces/a/secrets":                                                         403,
	"GET /api/v1/namespaces/a/secrets/b":                                                       403,
	"GET /api/v1/namespaces/a/Secrets/b":                                                       403,
	"GET /api/v1/namespaces/a/configmaps":                                                      403,
	"GET /api/v1/namespaces/a/pods/b/log":                                                      403,
	"GET /api/v1/namespaces/a/pods/b/exec":                                                     403,
	"GET /api/v1/namespaces/a/pods/b/portforward":                                              403,
	"GET /api/v1/namespaces/a/services/b/proxy":                                                403,
	"GET /api/v1/namespaces/a/services/b/proxy/c":                                              403,
	"GET /api/v1/nodes/a/proxy/logs":                                                           403,
	"GET /api/v1/namespaces/a/finalize":                                                        403,
	"GET /api/v1/namespaces/a/status":                                                          403,
	"GET /api/v1/namespaces/a/events/b/log":                                                    403,
	"GET /api/v1/watch/namespaces/a/secrets":                                                   403,
	"GET /api/v1/proxy/namespaces/a/services/b":                                                403,
	"GET /api/v1/namespaces/a/namespaces/b/secrets":                                            403,
	"GET /api/v2/namespaces":                                                                   403,
	"GET /api/v1beta/namespaces":                                                               403,
	"GET /apis/apps/v1/deployments":                                                            403,
	"GET /apis//v1/secrets":                                                                    400,
	"GET /apis/core/v1/secrets":                                                                403,
	"GET /apis/cluster.open-cluster-management.io/v1/secrets":                                  403,
	"GET /apis/cluster.open-cluster-management.io/v1/managedclusters/a/proxy":                  403,
	"GET /apis/cluster.open-cluster-management.io/v1/managedclusters/a/status":                 403,
	"GET /apis/cluster.open-cluster-management.io/v1beta1/placements/p/explain":                403,
	"GET /apis/cluster.open-cluster-management.io/v1beta1/namespaces/a/placements/p/explain/q": 403,
	"GET /apis/clusters.openmcp.cloud/v1alpha1/namespaces/a/accessrequests/b/token":            403,
	"GET /apis/authorization.k8s.io/v1/selfsubjectrulesreviews":                                403,
	"GET /openapi/v2":                                                                          403,
	"GET /openapi/v3":                                                                          403,
	"GET /metrics":                                                                             403,
	"GET /logs":                                                                                403,
	"GET /debug/pprof":                                                                         403,
	"GET /livez":                                                                               403,
	"GET /readyz/etcd":                                                                         403,
	"GET /version/a":                                                                           403,
	"GET ":                                                                                     400,
	"GET /":                                                                                    400,
	"GET //":                                                                                   400,
	"GET /version/":                                                                            400,
	"GET //version":                                                                            400,
	"GET /.":                                                                                   400,
	"GET /..":                                                                                  400,
	"GET /api/v1/namespaces/../secrets":                                                        400,
	"GET /api/v1/namespaces/./secrets":                                                         400,
	"GET /api/v1/namespaces/%2e%2e/secrets":                                                    400,
	"GET /api/v1/namespaces/%2E%2E/%2E%2E/secrets":                                             400,
	"GET /api/v1/namespaces/a/events/..%2fsecrets":                                             400,
	"GET /api/v1/namespaces/a/events/%252e%252e%252fsecrets":                                   400,
	"GET /api/v1/namespaces/a%2fsecrets":                                                       400,
	"GET /api/v1/namespaces/a%5csecrets":                                                       400,
	`GET /api/v1/namespaces/a\secrets`:                                                         400,
	"GET /api/v1/namespaces/a%00":                                                              400,
	"GET /api/v1/namespaces/a%0d%0aX:%20y":                                                     400,
	"GET /api/v1/namespaces/a%3fwatch=1":                                                       400,
	"GET /api/v1/namespaces/a%23":                                                              400,
	"GET /api/v1/namespaces/a;b":                                                               400,
	"GET /api/v1/namespaces/%":                                                                 400,
	"GET /api/v1/namespaces/%zz":                                                               400,
	"GET /api/v1/namespaces/%c0%ae%c0%ae/secrets":                                              400,
	"GET /api/v1/namespaces/%ef%bc%8e%ef%bc%8e/secrets":                                        400,
	"GET /api/v1/namespaces/é":                                                                 400,
	"GET /version?method=DELETE":                                                               400,
	"GET /readyz?exclude=etcd":                                                                 400,
	"GET /readyz?verbose&verbose":                                                              400,
	"GET /api/v1/namespaces?follow=1":                                                          400,
	"GET /api/v1/namespaces?method=DELETE":                                                     400,
	"GET /api/v1/namespaces?as=admin":                                                          400,
	"GET /api/v1/namespaces?limit=1&limit=2":                                                   400,
	"GET /api/v1/namespaces?limit=1;watch=1":                                                   400,
	"GET /api/v1/namespaces?Watch=1":                                                           400,
	"GET /api/v1/namespaces?%77atch=1&watch=0":                                                 400,
	"GET /api/v1/namespaces?%zz":                                                               400,
	"POST /apis/authorization.k8s.io/v1/selfsubjectrulesreviews?dryRun=All":                    400,
	"GET /apis/cluster.open-cluster-management.io/v1beta1/namespaces/a/placements/p/explain?watch=1": 400,
}

func TestAttack_PathsParametersAndMethods(t *testing.T) {
	for asked, code := range attacks {
		method, uri, _ := strings.Cut(asked, " ")
		at, query, _ := strings.Cut(uri, "?")
		q, refused := ask(method, at, query)
		if refused == nil {
			t.Errorf("%s: the hub is asked %s %s?%s", asked, q.method, q.path, q.query.Encode())
		} else if int(refused.Code) != code {
			t.Errorf("%s: got %d, want %d: %s", asked, refused.Code, code, refused.Message)
		}
	}
}

// TestAttack_PathsAreCheckedUnchanged verifies that nothing in front of the filter changes the path.
func TestAttack_PathsAreCheckedUnchanged(t *testing.T) {
	f := start(t)
	cookie := f.letIn()
	for asked, code := range attacks {
		method, uri, _ := strings.Cut(asked, " ")
		at, _, _ := strings.Cut(uri, "?")
		r := f.request(method, "/", "", "Cookie", cookie, "Origin", "http://"+f.host, "Content-Type", "application/json")
		if strings.ContainsAny(uri, "é") || strings.Contains(at, "%zz") || strings.HasSuffix(uri, "/%") {
			continue // no client sends this, or Go's server rejects it
		}
		r.URL = &url.URL{Scheme: "http", Host: f.host, Opaque: "/hub" + uri} // sent unchanged
		f.refused(asked, r, code)
	}
	f.refused("above /hub", f.request("GET", "/hub/../hub/version", "", "Cookie", cookie), http.StatusBadRequest)
	f.refused("beside /hub", f.request("GET", "/hubversion", "", "Cookie", cookie), http.StatusNotFound)
	f.refused("not /hub", f.request("GET", "/%68ub/version", "", "Cookie", cookie), http.StatusNotFound)
	f.refused("not /hub", f.request("GET", "//hub/version", "", "Cookie", cookie), http.StatusNotFound)
}

func TestAccepted_IsJSON(t *testing.T) {
	table := "application/json;as=Table;v=v1;g=meta.k8s.io"
	for header, want := range map[string]string{
		"": "application/json", "*/*": "application/json", "text/html": "application/json", "application/json": "application/json",
		"application/vnd.kubernetes.protobuf": "application/json", "application/json;as=Table;v=v1;g=evil": "application/json",
		table:                        table + ",application/json",
		table + ", application/json": table + ",application/json",
		"application/json; as=Table; v=v1; g=meta.k8s.io": table + ",application/json",
	} {
		if got := accepted(header); got != want {
			t.Errorf("%q: the hub is asked for %q, not %q", header, got, want)
		}
	}
}

// FuzzAsk verifies that each request to the hub is clean, has the meaning of the browser's request, and is for an allowed resource.
func FuzzAsk(f *testing.F) {
	for asked := range attacks {
		_, uri, _ := strings.Cut(asked, " ")
		at, query, _ := strings.Cut(uri, "?")
		f.Add(true, at, query)
	}
	f.Add(true, "/apis/cluster.open-cluster-management.io/v1beta1/namespaces/a/placements/p/explain", "cluster=c")
	f.Add(false, "/apis/edge.clusterhub.dev/v1alpha1/namespaces/a/deploychecks", "")
	requests := &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	f.Fuzz(func(t *testing.T, reads bool, at, query string) {
		method := http.MethodPost
		if reads {
			method = http.MethodGet
		}
		q, refused := ask(method, at, query)
		if refused != nil {
			return
		}
		made, err := url.ParseRequestURI(q.path + "?" + q.query.Encode())
		if err != nil || made.Path != q.path || path.Clean(q.path) != q.path || strings.ContainsAny(q.path, "%?#;\\ ") {
			t.Fatalf("%q: the hub is asked %q: %v", at, q.path, err)
		}
		if decoded, err := url.PathUnescape(at); err != nil || decoded != q.path {
			t.Fatalf("%q becomes %q", at, q.path)
		}
		// This is how the hub itself parses it.
		info, err := requests.NewRequestInfo(&http.Request{Method: q.method, URL: made})
		if err != nil {
			t.Fatalf("%q: %v", q.path, err)
		}
		key := info.APIGroup + "/" + info.Resource
		_, review := reviews[key]
		switch {
		case !info.IsResourceRequest && reads: // discovery, version and health
		case info.IsResourceRequest && slices.Contains([]string{"get", "list", "watch"}, info.Verb) && reads &&
			slices.Contains(resources[info.APIGroup], info.Resource) &&
			(info.Subresource == "" || info.Subresource == "explain" && info.Resource == "placements"):
		case info.IsResourceRequest && info.Verb == "create" && !reads && review && info.Subresource == "" && info.Name == "":
		default:
			t.Fatalf("%s %q is passed on: %+v", method, q.path, info)
		}
		if watches := info.Verb == "watch"; info.IsResourceRequest && watches && !q.watch {
			t.Fatalf("%q?%s is a watch that ends like another request", q.path, made.RawQuery)
		}
		if !reads && len(q.query) > 0 {
			t.Fatalf("%q is sent with %v", q.path, q.query)
		}
	})
}
