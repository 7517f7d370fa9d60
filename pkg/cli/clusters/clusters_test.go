// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusters_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/cli/clitest"
)

const (
	viewedPath     = "/apis/clusterview.open-cluster-management.io/v1/managedclusters"
	viewedSetsPath = "/apis/clusterview.open-cluster-management.io/v1alpha1/managedclustersets"
)

// newRoleOnASet returns a hub for a user who has permissions on a set with the cluster c1, and none on clusters or on all sets.
func newRoleOnASet(t *testing.T) (*clitest.Server, string) {
	s := clitest.NewServer(t, clitest.NewCluster("c1", nil), clitest.NewSet("payments"))
	for path, version := range map[string]string{viewedPath + "/c1": "v1", viewedSetsPath + "/payments": "v1alpha1"} {
		shown := s.Get(strings.NewReplacer("clusterview.", "cluster.", "v1alpha1", "v1beta2").Replace(path))
		shown.SetAPIVersion("clusterview.open-cluster-management.io/" + version)
		shown.SetResourceVersion("7.of-the-view")
		shown.SetUID("c1-uid")
		s.Objects[path] = shown.Object
	}
	for _, request := range []string{"GET " + clitest.ClustersPath, "GET " + clitest.ClustersPath + "/c1", "PATCH " + clitest.ClustersPath + "/c1", "PATCH " + clitest.ClustersPath + "/c1/label",
		"DELETE " + clitest.ClustersPath + "/c1", "GET " + clitest.SetsPath} {
		s.Refuse(request, clitest.Forbidden("managedclusters", strings.ToLower(request[:strings.Index(request, " ")])))
	}
	return s, clitest.Kubeconfig(t, map[string]*clitest.Server{"hub": s})
}

func TestReach_ByRoleOnSet(t *testing.T) {
	s, config := newRoleOnASet(t)
	clitest.Says(t, clitest.MustRun(t, config, "get", "clusters"), "c1")
	clitest.Says(t, clitest.MustRun(t, config, "get", "clusters", "-o", "yaml"), "apiVersion: cluster.open-cluster-management.io/v1", "name: c1")
	clitest.Says(t, clitest.MustRun(t, config, "get", "clustersets"), "payments")
	clitest.MustRun(t, config, "label", "c1", "a=b")
	if got := s.Get(viewedPath + "/c1").GetLabels(); !maps.Equal(got, map[string]string{"a": "b"}) {
		t.Errorf("the labels are %v", got)
	}
	// The patch names the version that was read by the view.
	clitest.Says(t, s.Bodies["PATCH "+viewedPath+"/c1"], `"resourceVersion":"7.of-the-view"`)
}

// TestReach_DeletesByRoleOnSet verifies that a cluster can be deleted by a role on a set. A deleted cluster is in no set, so that no user sees it
// by one. This looks the same as a cluster that is in none of the user's sets.
func TestReach_DeletesByRoleOnSet(t *testing.T) {
	for name, gone := range map[string]*apierrors.StatusError{
		"forbidden": clitest.Forbidden("managedclusters", "get"), "not found": apierrors.NewNotFound(clusterv1.Resource("managedclusters"), "c1"),
	} {
		s, config := newRoleOnASet(t)
		s.On["DELETE "+viewedPath+"/c1"] = func(http.ResponseWriter, []byte) bool {
			s.Refuse("GET "+viewedPath+"/c1", gone)
			return false
		}
		if got := clitest.MustRun(t, config, "delete", "cluster", "c1", "--wait"); got != "managedcluster \"c1\" deleted\n" || s.Get(viewedPath+"/c1") != nil {
			t.Errorf("%s: it says %q", name, got)
		}
		// The deletion names the UID that was read by the view.
		clitest.Says(t, s.Bodies["DELETE "+viewedPath+"/c1"], `"preconditions":{"uid":"c1-uid"}`)
	}
}

// TestReach_UsesViewOnlyWhenForbidden verifies that a user with the permission on managedclusters uses these, and that errors other than
// Forbidden do not make the command use the view.
func TestReach_UsesViewOnlyWhenForbidden(t *testing.T) {
	s, config := newRoleOnASet(t)
	clear(s.On)
	clitest.MustRun(t, config, "get", "clusters")
	clitest.MustRun(t, config, "label", "c1", "a=b")
	clitest.MustRun(t, config, "delete", "cluster", "c1")
	clitest.MustRun(t, config, "delete", "cluster", "c1")
	s.Refuse("GET "+clitest.ClustersPath, apierrors.NewServiceUnavailable("away"))
	if _, _, err := clitest.Run(t, config, "get", "clusters"); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("it says %v", err)
	}
	if slices.ContainsFunc(s.Asked, func(r string) bool { return strings.Contains(r, "clusterview") }) {
		t.Errorf("it asks %q", s.Asked)
	}
}

// TestReach_ReportsMissingPermission verifies that the error for a user without any permission names the well-known one, also if the hub does not serve the
// view.
func TestReach_ReportsMissingPermission(t *testing.T) {
	for name, change := range map[string]func(*clitest.Server){
		"no role on a set": func(s *clitest.Server) {
			delete(s.Objects, viewedPath+"/c1")
			delete(s.Objects, viewedSetsPath+"/payments")
		},
		"the view is refused": func(s *clitest.Server) {
			for _, request := range []string{"GET " + viewedPath, "GET " + viewedPath + "/c1", "DELETE " + viewedPath + "/c1", "GET " + viewedSetsPath} {
				s.Refuse(request, apierrors.NewForbidden(clusterv1.Resource("managedclusters"), "", nil))
			}
		},
		"an older hub": func(s *clitest.Server) {
			for _, request := range []string{"GET " + viewedPath, "GET " + viewedPath + "/c1", "DELETE " + viewedPath + "/c1", "GET " + viewedSetsPath} {
				s.On[request] = func(w http.ResponseWriter, _ []byte) bool { http.NotFound(w, nil); return true }
			}
		},
		"a hub that deletes nothing there": func(s *clitest.Server) {
			for _, request := range []string{"GET " + viewedPath, "PATCH " + viewedPath + "/c1", "DELETE " + viewedPath + "/c1"} {
				s.Refuse(request, apierrors.NewMethodNotSupported(clusterv1.Resource("managedclusters"), "delete"))
			}
			delete(s.Objects, viewedSetsPath+"/payments")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, config := newRoleOnASet(t)
			change(s)
			for _, command := range []string{"get clusters", "get clustersets", "label c1 a=b", "delete cluster c1"} {
				stdout, _, err := clitest.Run(t, config, strings.Fields(command)...)
				if err == nil || stdout != "" {
					t.Fatalf("%s: %v, %q", command, err, stdout)
				}
				clitest.Says(t, err.Error(), "cannot ", `resource "managedclusters"`)
			}
		})
	}
}
