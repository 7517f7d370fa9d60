// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
)

const (
	viewedPath     = "/apis/clusterview.open-cluster-management.io/v1/managedclusters"
	viewedSetsPath = "/apis/clusterview.open-cluster-management.io/v1alpha1/managedclustersets"
)

// newRoleOnASet returns a hub for a user who has permissions on a set with the cluster c1, and none on clusters or on all sets.
func newRoleOnASet(t *testing.T) (*fakeServer, string) {
	s := newServer(t, newCluster("c1", nil), newSet("payments"))
	for path, version := range map[string]string{viewedPath + "/c1": "v1", viewedSetsPath + "/payments": "v1alpha1"} {
		shown := s.get(strings.NewReplacer("clusterview.", "cluster.", "v1alpha1", "v1beta2").Replace(path))
		shown.SetAPIVersion("clusterview.open-cluster-management.io/" + version)
		shown.SetResourceVersion("7.of-the-view")
		shown.SetUID("c1-uid")
		s.objects[path] = shown.Object
	}
	for _, request := range []string{"GET " + clustersPath, "GET " + clustersPath + "/c1", "PATCH " + clustersPath + "/c1", "PATCH " + clustersPath + "/c1/label",
		"DELETE " + clustersPath + "/c1", "GET " + setsPath} {
		s.refuse(request, forbidden("managedclusters", strings.ToLower(request[:strings.Index(request, " ")])))
	}
	return s, kubeconfig(t, map[string]*fakeServer{"hub": s})
}

func TestReach_ByRoleOnSet(t *testing.T) {
	s, config := newRoleOnASet(t)
	says(t, mustRun(t, config, "get", "clusters"), "c1")
	says(t, mustRun(t, config, "get", "clusters", "-o", "yaml"), "apiVersion: cluster.open-cluster-management.io/v1", "name: c1")
	says(t, mustRun(t, config, "get", "clustersets"), "payments")
	mustRun(t, config, "label", "c1", "a=b")
	if got := s.get(viewedPath + "/c1").GetLabels(); !maps.Equal(got, map[string]string{"a": "b"}) {
		t.Errorf("the labels are %v", got)
	}
	// The patch names the version that was read by the view.
	says(t, s.bodies["PATCH "+viewedPath+"/c1"], `"resourceVersion":"7.of-the-view"`)
}

// TestReach_DeletesByRoleOnSet verifies that a cluster can be deleted by a role on a set. A deleted cluster is in no set, so that no user sees it
// by one. This looks the same as a cluster that is in none of the user's sets.
func TestReach_DeletesByRoleOnSet(t *testing.T) {
	for name, gone := range map[string]*apierrors.StatusError{
		"forbidden": forbidden("managedclusters", "get"), "not found": apierrors.NewNotFound(clusterv1.Resource("managedclusters"), "c1"),
	} {
		s, config := newRoleOnASet(t)
		s.on["DELETE "+viewedPath+"/c1"] = func(http.ResponseWriter, []byte) bool {
			s.refuse("GET "+viewedPath+"/c1", gone)
			return false
		}
		if got := mustRun(t, config, "delete", "cluster", "c1", "--wait"); got != "managedcluster \"c1\" deleted\n" || s.get(viewedPath+"/c1") != nil {
			t.Errorf("%s: it says %q", name, got)
		}
		// The deletion names the UID that was read by the view.
		says(t, s.bodies["DELETE "+viewedPath+"/c1"], `"preconditions":{"uid":"c1-uid"}`)
	}
}

// TestReach_UsesViewOnlyWhenForbidden verifies that a user with the permission on managedclusters uses these, and that errors other than
// Forbidden do not make the command use the view.
func TestReach_UsesViewOnlyWhenForbidden(t *testing.T) {
	s, config := newRoleOnASet(t)
	clear(s.on)
	mustRun(t, config, "get", "clusters")
	mustRun(t, config, "label", "c1", "a=b")
	mustRun(t, config, "delete", "cluster", "c1")
	mustRun(t, config, "delete", "cluster", "c1")
	s.refuse("GET "+clustersPath, apierrors.NewServiceUnavailable("away"))
	if _, _, err := run(t, config, "get", "clusters"); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("it says %v", err)
	}
	if slices.ContainsFunc(s.asked, func(r string) bool { return strings.Contains(r, "clusterview") }) {
		t.Errorf("it asks %q", s.asked)
	}
}

// TestReach_ReportsMissingPermission verifies that the error for a user without any permission names the well-known one, also if the hub does not serve the
// view.
func TestReach_ReportsMissingPermission(t *testing.T) {
	for name, change := range map[string]func(*fakeServer){
		"no role on a set": func(s *fakeServer) {
			delete(s.objects, viewedPath+"/c1")
			delete(s.objects, viewedSetsPath+"/payments")
		},
		"the view is refused": func(s *fakeServer) {
			for _, request := range []string{"GET " + viewedPath, "GET " + viewedPath + "/c1", "DELETE " + viewedPath + "/c1", "GET " + viewedSetsPath} {
				s.refuse(request, apierrors.NewForbidden(clusterv1.Resource("managedclusters"), "", nil))
			}
		},
		"an older hub": func(s *fakeServer) {
			for _, request := range []string{"GET " + viewedPath, "GET " + viewedPath + "/c1", "DELETE " + viewedPath + "/c1", "GET " + viewedSetsPath} {
				s.on[request] = func(w http.ResponseWriter, _ []byte) bool { http.NotFound(w, nil); return true }
			}
		},
		"a hub that deletes nothing there": func(s *fakeServer) {
			for _, request := range []string{"GET " + viewedPath, "PATCH " + viewedPath + "/c1", "DELETE " + viewedPath + "/c1"} {
				s.refuse(request, apierrors.NewMethodNotSupported(clusterv1.Resource("managedclusters"), "delete"))
			}
			delete(s.objects, viewedSetsPath+"/payments")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, config := newRoleOnASet(t)
			change(s)
			for _, command := range []string{"get clusters", "get clustersets", "label c1 a=b", "delete cluster c1"} {
				stdout, _, err := run(t, config, strings.Fields(command)...)
				if err == nil || stdout != "" {
					t.Fatalf("%s: %v, %q", command, err, stdout)
				}
				says(t, err.Error(), "cannot ", `resource "managedclusters"`)
			}
		})
	}
}
