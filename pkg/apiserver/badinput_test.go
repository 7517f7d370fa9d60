// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

const strategicType = "application/strategic-merge-patch+json"

// TestBadInput_IsNotAServerError verifies that an error in a request causes no 5xx status and no panic. test/fuzz finds such requests.
func TestBadInput_IsNotAServerError(t *testing.T) {
	h := newViewedHub(t, deletingRoles())
	h.newSet("mine")
	h.newCluster("c1", "mine")
	h.patch("c1", `{"metadata":{"finalizers":["foregroundDeletion"]}}`)
	meta := func(path, more string) string {
		return `{"apiVersion":"` + strings.Split(path, "/")[2] + `/v1","kind":"ManagedCluster","metadata":{"name":"c1"},` + more + `}`
	}
	options := `{"apiVersion":"v1","kind":"DeleteOptions",`
	for _, path := range []string{storedPath, viewedPath} {
		for name, bad := range map[string]struct {
			method, contentType, body string
			code                      int
		}{
			"an apply of a text for a bool":        {http.MethodPatch, applyType, meta(path, `"spec":{"hubAcceptsClient":"x"}`), 400},
			"an apply of a list for a map":         {http.MethodPatch, applyType, meta(path, `"spec":[]`), 400},
			"an apply of an unknown field":         {http.MethodPatch, applyType, meta(path, `"specs":{}`), 400},
			"an order that is a text":              {http.MethodPatch, strategicType, `{"metadata":{"$setElementOrder/finalizers":"x"}}`, 400},
			"an order of maps":                     {http.MethodPatch, strategicType, `{"metadata":{"finalizers":["a/b"],"$setElementOrder/finalizers":[{"a":1}]}}`, 400},
			"a directive that is a list":           {http.MethodPatch, strategicType, `{"metadata":{"$patch":["name"]}}`, 400},
			"keys that are maps":                   {http.MethodPatch, strategicType, `{"spec":{"$retainKeys":[{"a":"b"}],"leaseDurationSeconds":1}}`, 400},
			"a map for a list":                     {http.MethodPatch, strategicType, `{"spec":{"taints":{"a":1}}}`, 422},
			"a replacement of all without a value": {http.MethodPatch, "application/json-patch+json", `[{"op":"replace","path":""}]`, 400},
			"a test of all without a value":        {http.MethodPatch, "application/json-patch+json", `[{"op":"test","path":""}]`, 400},
			"a dry run that removes a finalizer":   {http.MethodDelete, "application/json", options + `"dryRun":["All"],"propagationPolicy":"Background"}`, 200},
			"options of another type":              {http.MethodDelete, "application/json", `{"apiVersion":"v1","kind":"Status"}`, 400},
		} {
			query := ""
			if bad.contentType == applyType {
				query = "?fieldManager=a"
			}
			got := h.do("root", bad.method, path+"/c1"+query, bad.contentType, bad.body)
			if got.code != bad.code {
				t.Errorf("%s of %s: got %d %s, want %d", name, path, got.code, got.body, bad.code)
			}
		}
	}
	unsafe := options + `"ignoreStoreReadErrorWithClusterBreakingPotential":true}`
	if got := h.do("root", http.MethodDelete, viewedPath+"/c1", "application/json", unsafe); got.code != 400 || !strings.Contains(got.body, "not shown here") {
		t.Errorf("a deletion of what cannot be read: %d %s", got.code, got.body)
	}
	h.stored("c1") // it exists
}

// failing is a plugin that changes objects and fails.
type failing struct {
	*admission.Handler
	err error
}

// Admit implements admission.MutationInterface.
func (f *failing) Admit(context.Context, admission.Attributes, admission.ObjectInterfaces) error {
	return f.err
}

// TestBadInput_PluginErrorsAreNotPatchErrors verifies that the failure of a plugin is not reported as an error in the patch.
func TestBadInput_PluginErrorsAreNotPatchErrors(t *testing.T) {
	plugin := &failing{Handler: admission.NewHandler(admission.Update)}
	h := newViewedHub(t, deletingRoles(), plugin)
	h.newCluster("c1", "mine")
	for want, err := range map[int]error{500: errors.New("plugin failed"), 403: apierrors.NewForbidden(cluster.Resource("managedclusters"), "c1", errors.New("no")), 503: apierrors.NewServiceUnavailable("later")} {
		plugin.err = err
		if got := h.do("root", http.MethodPatch, storedPath+"/c1", mergeType, `{"metadata":{"labels":{"a":"b"}}}`); got.code != want {
			t.Errorf("%v: got %d %s", err, got.code, got.body)
		}
	}
}
