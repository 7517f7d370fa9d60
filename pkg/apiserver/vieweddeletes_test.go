// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/discovery"
	restclient "k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	v1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
)

// deletingRoles returns roles: ann may delete the clusters of the set mine, nan the cluster c1. All others have similar permissions that do not
// suffice.
func deletingRoles() roles {
	sees := rule("get", "managedclustersets/clusters", "mine")
	return roles{
		"ann":     {rule("get,delete", "managedclustersets/clusters", "mine")},
		"nan":     {rule("get,delete", "managedclusters", "c1")},
		"viewer":  {sees},
		"writer":  {rule("get,update,patch", "managedclustersets/clusters", "mine")},
		"labels":  {sees, rule("create,update,patch,delete", "managedclusters/label")},
		"accepts": {sees, rule("update,delete", "managedclusters/accept"), rule("update,delete", "managedclusters/finalizers", "c1")},
		"of sets": {sees, rule("get,update,patch,delete", "managedclustersets", "mine")},
		"others":  {sees, rule("get,delete", "managedclustersets/clusters", "other"), rule("get,delete", "managedclusters", "c2")},
		"views":   {sees, rule("deletecollection", "managedclustersets/clusters"), rule("deletecollection", "managedclusters")},
		"blind":   {rule("delete", "managedclustersets/clusters", "mine"), rule("delete", "managedclusters", "c1")},
	}
}

func withDeletableFleet(t *testing.T) *viewedHub {
	h := newViewedHub(t, deletingRoles())
	h.newSet("mine")
	h.newSet("other")
	for name, set := range map[string]string{"c1": "mine", "c2": "mine", "o1": "other"} {
		h.newCluster(name, set)
	}
	return h
}

// delete sends a deletion with these options.
func (h *viewedHub) delete(who, path string, options metav1.DeleteOptions) answer {
	h.t.Helper()
	options.APIVersion, options.Kind = "v1", "DeleteOptions"
	return h.do(who, http.MethodDelete, path, "application/json", encoded(h.t, options))
}

// patch changes the stored cluster.
func (h *viewedHub) patch(name, patch string) {
	h.t.Helper()
	h.must("root", http.MethodPatch, storedPath+"/"+name, mergeType, patch)
}

const inSet = `{"metadata":{"labels":{"` + cluster.ClusterSetLabel + `":%q}}}`

// TestViewedDeletes_Attacks verifies that a user who may not delete the stored cluster, by its name or by one of its sets, cannot delete it here, and
// that nothing is marked as deleted.
func TestViewedDeletes_Attacks(t *testing.T) {
	h := withDeletableFleet(t)
	exclusive := `{"apiVersion":"cluster.open-cluster-management.io/v1beta1","kind":"ManagedClusterSet","metadata":{"name":"b"},"spec":` +
		`{"clusterSelector":{"selectorType":"ExclusiveLabel","exclusiveLabel":{"key":"info.open-cluster-management.io/region","value":"b"}}}}`
	h.must("root", http.MethodPost, "/apis/cluster.open-cluster-management.io/v1beta1/managedclustersets", "application/json", exclusive)
	h.newCluster("b1", "other")
	h.patch("b1", `{"metadata":{"labels":{"info.open-cluster-management.io/region":"b"}}}`)
	own, foreign, older := h.stored("c1").UID, h.stored("o1").UID, "1"
	now := h.must("root", http.MethodGet, viewedPath+"/c1", "", "").cluster.ResourceVersion
	storedVersion := h.stored("c1").ResourceVersion
	for name, attack := range map[string]struct {
		who, path string
		options   metav1.DeleteOptions
		code      int
		says      string
	}{
		"a viewer":                           {"viewer", "/c1", metav1.DeleteOptions{}, 403, "managedclustersets/clusters"},
		"who updates":                        {"writer", "/c1", metav1.DeleteOptions{}, 403, "managedclustersets/clusters"},
		"a right to label":                   {"labels", "/c1", metav1.DeleteOptions{}, 403, "managedclustersets/clusters"},
		"a right to accept":                  {"accepts", "/c1", metav1.DeleteOptions{}, 403, "managedclustersets/clusters"},
		"a right on the set":                 {"of sets", "/c1", metav1.DeleteOptions{}, 403, "managedclustersets/clusters"},
		"a right on others":                  {"others", "/c1", metav1.DeleteOptions{}, 403, "managedclustersets/clusters"},
		"a right to delete all":              {"views", "/c1", metav1.DeleteOptions{}, 403, "managedclustersets/clusters"},
		"who does not see it":                {"blind", "/c1", metav1.DeleteOptions{}, 403, "to see the cluster"},
		"in another set":                     {"ann", "/o1", metav1.DeleteOptions{}, 403, "to see the cluster"},
		"in an exclusive set":                {"ann", "/b1", metav1.DeleteOptions{}, 403, "to see the cluster"},
		"another name":                       {"nan", "/c2", metav1.DeleteOptions{}, 403, "to see the cluster"},
		"nothing":                            {"ann", "/nowhere", metav1.DeleteOptions{}, 403, "to see the cluster"},
		"another UID":                        {"ann", "/c1", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &foreign}}, 409, "UID"},
		"an older version":                   {"ann", "/c1", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &older}}, 409, "changed"},
		"a version of the stored resource":   {"ann", "/c1", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &storedVersion}}, 409, "version of another resource"},
		"no version":                         {"ann", "/c1", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: new("x")}}, 400, "preconditions.resourceVersion"},
		"an empty version":                   {"ann", "/c1", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: new("")}}, 409, "version"},
		"the UID, and an older version":      {"ann", "/c1", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &own, ResourceVersion: &older}}, 409, "changed"},
		"the version, and another UID":       {"ann", "/c1", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &foreign, ResourceVersion: &now}}, 409, "UID"},
		"a viewer tells nothing of the UID":  {"viewer", "/c1", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &foreign}}, 403, "managedclustersets/clusters"},
		"an option that is none":             {"ann", "/c1", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletionPropagation("Sideways"))}, 422, "propagationPolicy"},
		"a dry run of who may":               {"ann", "/c1", metav1.DeleteOptions{DryRun: []string{"All"}}, 200, ""},
		"a dry run of who may, with orphans": {"ann", "/c1", metav1.DeleteOptions{DryRun: []string{"All"}, PropagationPolicy: new(metav1.DeletePropagationOrphan)}, 200, ""},
		"a dry run of a viewer":              {"viewer", "/c1", metav1.DeleteOptions{DryRun: []string{"All"}}, 403, "managedclustersets/clusters"},
		"all, by an admin":                   {"root", "", metav1.DeleteOptions{}, 405, ""},
		"all of a set":                       {"ann", "?labelSelector=a", metav1.DeleteOptions{}, 405, ""},
		"all, by a right to it":              {"views", "", metav1.DeleteOptions{}, 405, ""},
		"its status":                         {"ann", "/c1/status", metav1.DeleteOptions{}, 404, ""},
	} {
		for _, finalizers := range []string{`null`, `["example.com/wait"]`} {
			t.Run(name+"/"+finalizers, func(t *testing.T) {
				h.t = t
				if finalizers != "null" && attack.options.Preconditions != nil && attack.options.Preconditions.ResourceVersion == &now {
					t.Skip("the version is that of before")
				}
				if finalizers != "null" {
					h.patch("c1", `{"metadata":{"finalizers":`+finalizers+`}}`)
				}
				got := h.delete(attack.who, viewedPath+attack.path, attack.options)
				if got.code != attack.code || !strings.Contains(got.body, attack.says) {
					t.Errorf("got %d %s, want %d that says %q", got.code, got.body, attack.code, attack.says)
				}
				if attack.code == http.StatusForbidden && (strings.Contains(got.body, string(own)) || strings.Contains(got.body, storedVersion+`"`)) {
					t.Errorf("a refusal says what the cluster has: %s", got.body)
				}
				for _, name := range []string{"c1", "c2", "o1", "b1"} {
					if c := h.stored(name); c.DeletionTimestamp != nil {
						t.Fatalf("%s is marked as deleted", name)
					}
				}
				if finalizers != "null" {
					h.patch("c1", `{"metadata":{"finalizers":null}}`)
				}
			})
		}
	}
}

// TestViewedDeletes_RecheckAfterConflict verifies that the permission is checked for the object that is deleted: here another write happens
// after a first check has passed.
func TestViewedDeletes_RecheckAfterConflict(t *testing.T) {
	h := withDeletableFleet(t)
	for _, finalizers := range []string{`null`, `["example.com/wait"]`} {
		for what, between := range map[string]struct{ change, says string }{
			"it leaves the set": {fmt.Sprintf(inSet, "other"), "managedclustersets/clusters"},
			"it is written":     {`{"metadata":{"labels":{"a":"b"}}}`, "changed since"},
		} {
			h.patch("c2", `{"metadata":{"finalizers":`+finalizers+`,"labels":{"a":null,"`+cluster.ClusterSetLabel+`":"mine"}}}`)
			asked := 0
			h.before = func(a admission.Attributes) {
				if a.GetUserInfo().GetName() == "ann" {
					asked++
					if asked == 1 {
						h.patch("c2", between.change)
					}
				}
			}
			version := h.must("ann", http.MethodGet, viewedPath+"/c2", "", "").cluster.ResourceVersion
			got := h.delete("ann", viewedPath+"/c2", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &version}})
			if got.code/100 != 4 || !strings.Contains(got.body, between.says) || asked != 1 {
				t.Errorf("%s, with finalizers %s: %d %s after %d times", what, finalizers, got.code, got.body, asked)
			}
			if h.stored("c2").DeletionTimestamp != nil {
				t.Errorf("%s, with finalizers %s: it is marked as deleted", what, finalizers)
			}
		}
	}
}

// TestViewedDeletes_ActOnStoredCluster verifies that the effects and the response of a deletion are those of the stored cluster, except for
// the API version and the resource versions.
func TestViewedDeletes_ActOnStoredCluster(t *testing.T) {
	h := withDeletableFleet(t)
	for name, options := range map[string]metav1.DeleteOptions{
		"no options":     {},
		"dry run":        {DryRun: []string{"All"}},
		"background":     {PropagationPolicy: new(metav1.DeletePropagationBackground)},
		"foreground":     {PropagationPolicy: new(metav1.DeletePropagationForeground)},
		"orphan":         {PropagationPolicy: new(metav1.DeletePropagationOrphan)},
		"dependents too": {OrphanDependents: new(false)},
		"grace":          {GracePeriodSeconds: new(int64(30))},
		"at once":        {GracePeriodSeconds: new(int64(0))},
	} {
		for _, finalizers := range []string{`null`, `["example.com/wait"]`} {
			outcome := map[string]string{}
			for _, path := range []string{storedPath, viewedPath} {
				h.newCluster("twin", "mine")
				h.patch("twin", `{"metadata":{"finalizers":`+finalizers+`}}`)
				uid := h.stored("twin").UID
				options.Preconditions = &metav1.Preconditions{UID: &uid}
				who := "root"
				if path == viewedPath {
					version := h.must("ann", http.MethodGet, viewedPath+"/twin", "", "").cluster.ResourceVersion
					who, options.Preconditions.ResourceVersion = "ann", &version
				}
				got := h.delete(who, path+"/twin", options)
				var object metav1.PartialObjectMetadata
				if err := json.Unmarshal([]byte(got.body), &object); err != nil {
					t.Fatal(err)
				}
				answered := fmt.Sprintf("%d %s %v %v", got.code, object.Kind, object.Finalizers, object.DeletionTimestamp != nil)
				left := h.do("root", http.MethodGet, storedPath+"/twin", "", "")
				outcome[path] = fmt.Sprintf("%s; left %d %v %v", answered, left.code, left.cluster.Finalizers, left.cluster.DeletionTimestamp != nil)
				if object.Kind == "ManagedCluster" && !strings.HasPrefix(path, "/apis/"+object.APIVersion+"/") {
					t.Errorf("the answer of %s is of %s", path, object.APIVersion)
				}
				if object.Kind == "ManagedCluster" && path == viewedPath && left.code == 200 && options.DryRun == nil {
					shown := h.must("root", http.MethodGet, viewedPath+"/twin?resourceVersion="+object.ResourceVersion, "", "").cluster
					if shown.DeletionTimestamp == nil {
						t.Error("a read from the answer's version is from before the deletion")
					}
				}
				if left.code == 200 {
					h.patch("twin", `{"metadata":{"finalizers":null}}`)
					h.do("root", http.MethodDelete, storedPath+"/twin", "application/json", "")
				}
			}
			if outcome[viewedPath] != outcome[storedPath] {
				t.Errorf("%s, with finalizers %s: %s, want %s", name, finalizers, outcome[viewedPath], outcome[storedPath])
			}
		}
	}
}

// TestViewedDeletes_AreAdmittedAsStoredClusterDeletes verifies that admission gets a deletion of the stored cluster.
func TestViewedDeletes_AreAdmittedAsStoredClusterDeletes(t *testing.T) {
	h := withDeletableFleet(t)
	for who, name := range map[string]string{"ann": "c2", "nan": "c1"} {
		stored := h.stored(name)
		var seen []admission.Attributes
		h.before = func(a admission.Attributes) { seen = append(seen, a) }
		h.must(who, http.MethodDelete, viewedPath+"/"+name, "application/json", "")
		if len(seen) != 1 {
			t.Fatalf("admission was asked %d times", len(seen))
		}
		a := seen[0]
		old, ok := a.GetOldObject().(*cluster.ManagedCluster)
		if a.GetResource() != v1.SchemeGroupVersion.WithResource("managedclusters") || a.GetKind() != v1.SchemeGroupVersion.WithKind("ManagedCluster") ||
			a.GetName() != name || a.GetUserInfo().GetName() != who || a.GetSubresource() != "" || a.GetOperation() != admission.Delete ||
			!ok || old.UID != stored.UID || old.ResourceVersion != stored.ResourceVersion {
			t.Errorf("admission was asked about %s of %v %v %s", a.GetOperation(), a.GetResource(), a.GetKind(), a.GetName())
		}
		if got := h.do("root", http.MethodGet, storedPath+"/"+name, "", ""); got.code != http.StatusNotFound {
			t.Errorf("%s is left: %d", name, got.code)
		}
	}
}

// TestViewedDeletes_AreNotInDiscovery verifies that Kubernetes' garbage collector, and other clients that use discovery like it, do not watch
// clusters of the view.
func TestViewedDeletes_AreNotInDiscovery(t *testing.T) {
	h := withDeletableFleet(t)
	server := httptest.NewServer(h.handler)
	defer server.Close()
	for _, legacy := range []bool{false, true} {
		client := discovery.NewDiscoveryClientForConfigOrDie(&restclient.Config{Host: server.URL})
		client.UseLegacyDiscovery = legacy
		preferred, err := client.ServerPreferredResourcesWithContext(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		verbs := map[schema.GroupResource]string{}
		for _, list := range preferred {
			version, err := schema.ParseGroupVersion(list.GroupVersion)
			if err != nil {
				t.Fatal(err)
			}
			for i := range list.APIResources {
				verbs[schema.GroupResource{Group: version.Group, Resource: list.APIResources[i].Name}] = list.APIResources[i].Verbs.String()
			}
		}
		for resource, want := range map[string]string{
			"managedclusters.clusterview.open-cluster-management.io": "[get list patch update watch]",
			"managedclusters.cluster.open-cluster-management.io":     "[create delete deletecollection get list patch update watch]",
		} {
			if got := verbs[schema.ParseGroupResource(resource)]; got != want {
				t.Errorf("discovery, legacy %t, says that %s have %s, want %s", legacy, resource, got, want)
			}
		}
		deletable := discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"delete", "list", "watch"}}, preferred)
		for _, list := range deletable {
			if strings.Contains(list.GroupVersion, "clusterview") {
				t.Errorf("legacy %t: the garbage collector follows %v", legacy, list)
			}
		}
	}
}
