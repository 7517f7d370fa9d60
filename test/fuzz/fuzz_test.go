// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

const document = `{
	"paths": {
		"/apis/g/v1/namespaces/{namespace}/things/{name}": {
			"parameters": [{"name": "pretty", "in": "query"}, {"name": "name", "in": "path"}],
			"get": {"x-kubernetes-action": "get", "x-kubernetes-group-version-kind": {"group": "g", "version": "v1", "kind": "Thing"}},
			"patch": {"x-kubernetes-action": "patch", "x-kubernetes-group-version-kind": {"group": "g", "version": "v1", "kind": "Thing"},
				"parameters": [{"name": "dryRun", "in": "query"}]},
			"delete": {"x-kubernetes-action": "delete", "x-kubernetes-group-version-kind": {"group": "g", "version": "v1", "kind": "Thing"}}
		},
		"/apis/g/v1/namespaces/{namespace}/things": {
			"post": {"x-kubernetes-action": "post", "x-kubernetes-group-version-kind": {"group": "g", "version": "v1", "kind": "Thing"}},
			"delete": {"x-kubernetes-action": "deletecollection", "x-kubernetes-group-version-kind": {"group": "g", "version": "v1", "kind": "Thing"}}
		},
		"/apis/g/v1/": {"get": {"description": "of no kind"}}
	},
	"components": {"schemas": {
		"x.g.v1.Thing": {"type": "object", "properties": {
			"metadata": {"type": "object"},
			"spec": {"allOf": [{"$ref": "#/components/schemas/x.g.v1.Spec"}]}
		}},
		"x.g.v1.Spec": {"type": "object", "properties": {
			"size": {"type": "integer"}, "names": {"type": "array", "items": {"type": "string"}}, "self": {"$ref": "#/components/schemas/x.g.v1.Spec"},
			"by": {"type": "object", "additionalProperties": {"type": "string"}}
		}}
	}}
}`

func generator(t *testing.T, seed uint64) *Generator {
	t.Helper()
	g, err := New(seed, [][]byte{[]byte(document)}, []map[string]any{{
		"apiVersion": "g/v1", "kind": "Thing", "metadata": map[string]any{"name": "a", "namespace": "n"}, "spec": map[string]any{"size": int64(1)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestRequest_IsDeterministic verifies that the number and the seed determine a request, and that successive numbers go through all
// operations.
func TestRequest_IsDeterministic(t *testing.T) {
	const n = 500
	g, again, other := generator(t, 1), generator(t, 1), generator(t, 2)
	same := 0
	methods := map[string]int{}
	for i := range n {
		q := g.Request(i)
		methods[q.Method]++
		if r := again.Request(n - 1 - i); r != g.Request(n-1-i) {
			t.Fatalf("%v is another one: %v", g.Request(n-1-i), r)
		}
		if q == other.Request(i) {
			same++
		}
	}
	if len(g.operations) != 5 || methods[http.MethodDelete] != 2*n/5 || methods[http.MethodPost] != n/5 || same > n/10 {
		t.Errorf("%d operations, methods %v, %d requests are those of another seed", len(g.operations), methods, same)
	}
}

// TestRun_ReportsFailures verifies that failures of a server are reported: error codes, missing responses, and responses with forbidden texts, and
// that successes and rejections are not.
func TestRun_ReportsFailures(t *testing.T) {
	answers := []string{
		"200 {}", "400 {}", "500 {}", "400 at 10.0.0.1:6443", "503 {}", "504 {}", "panic",
		`504 {"details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}}`,
	}
	codes := map[string]int{"200": 200, "400": 400, "500": 500, "503": 503, "504": 504}
	numbers := make([]int, len(answers))
	asked := -1
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if asked == 0 { // the sample
			w.WriteHeader(http.StatusCreated)
			return
		}
		answer := answers[asked-1]
		if answer == "panic" {
			panic(http.ErrAbortHandler)
		}
		code, body, _ := strings.Cut(answer, " ")
		w.WriteHeader(codes[code])
		_, _ = w.Write([]byte(body))
	}))
	defer server.Close()
	g := generator(t, 1)
	only := slices.IndexFunc(g.operations, func(o operation) bool { return o.method == http.MethodPatch })
	for i := range numbers {
		numbers[i] = only // deleted samples would be created again
	}
	var reported []string
	got, err := g.Run(t.Context(), Target{Clients: []*http.Client{server.Client()}, URL: server.URL, Hidden: []string{"10.0.0.1"}}, numbers,
		func(_ Request, wrong string) { reported = append(reported, strings.Fields(wrong)[0]) })
	if want := []string{"500", "the", "503", "504", "no"}; err != nil || !slices.Equal(reported, want) || got[400] != 2 {
		t.Errorf("reported %q, want %q; %v, %v", reported, want, got, err)
	}
}
