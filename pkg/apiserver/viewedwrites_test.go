// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	v1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/registry/view/position"
)

// viewedRoles returns roles: ann may write the clusters of the set mine, nan the cluster c1. bob may see them. xan has all permissions except those
// on mine.
func viewedRoles() roles {
	return roles{
		"ann": {rule("get,update,patch", "managedclustersets/clusters", "mine")},
		"nan": {rule("get,update,patch", "managedclusters", "c1")},
		"bob": {rule("get", "managedclustersets/clusters", "mine")},
		"xan": {rule("get", "managedclustersets/clusters", "mine"), rule("update,patch", "managedclustersets/clusters", "other"),
			rule("get,update,patch", "managedclustersets", "mine"), rule("create,update,patch", "managedclusters/label")},
		"put": {rule("get,update", "managedclustersets/clusters", "mine")},
	}
}

// ways are the ways to write a changed cluster that was read before.
var ways = map[string]func(h *viewedHub, who, query string, before, after v1.ManagedCluster) answer{
	"update": func(h *viewedHub, who, query string, before, after v1.ManagedCluster) answer {
		return h.do(who, http.MethodPut, viewedPath+"/"+before.Name+query, "application/json", encoded(h.t, after))
	},
	"merge patch": func(h *viewedHub, who, query string, before, after v1.ManagedCluster) answer {
		return h.do(who, http.MethodPatch, viewedPath+"/"+before.Name+query, mergeType, difference(h.t, before, after))
	},
	"strategic merge patch": func(h *viewedHub, who, query string, before, after v1.ManagedCluster) answer {
		return h.do(who, http.MethodPatch, viewedPath+"/"+before.Name+query, "application/strategic-merge-patch+json", difference(h.t, before, after))
	},
	"json patch": func(h *viewedHub, who, query string, before, after v1.ManagedCluster) answer {
		return h.do(who, http.MethodPatch, viewedPath+"/"+before.Name+query, "application/json-patch+json",
			`[{"op":"replace","path":"","value":`+encoded(h.t, after)+`}]`)
	},
	"apply": applied,
}

func encoded(t *testing.T, object any) string {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func difference(t *testing.T, before, after v1.ManagedCluster) string {
	t.Helper()
	patch, err := jsonpatch.CreateMergePatch([]byte(encoded(t, before)), []byte(encoded(t, after)))
	if err != nil {
		t.Fatal(err)
	}
	return string(patch)
}

// withFleet returns a hub with c1 and c2 in mine, and o1 in other.
func withFleet(t *testing.T) *viewedHub {
	h := newViewedHub(t, viewedRoles())
	h.newSet("mine")
	h.newSet("other")
	h.newCluster("c1", "mine")
	h.newCluster("c2", "mine")
	h.newCluster("o1", "other")
	return h
}

// TestViewedWrites_Attacks verifies that what a user may not do to the stored cluster cannot be done here in any way, and that nothing of it is
// stored.
func TestViewedWrites_Attacks(t *testing.T) {
	h := withFleet(t)
	for name, attack := range map[string]struct {
		who    string
		change func(*v1.ManagedCluster)
		// code is the expected code, and says a part of the response. 200 is for a change that is ignored.
		code int
		says string
	}{
		"leave a set":       {"ann", func(c *v1.ManagedCluster) { delete(c.Labels, cluster.ClusterSetLabel) }, 403, "managedclusters/label"},
		"to another set":    {"ann", func(c *v1.ManagedCluster) { c.Labels[cluster.ClusterSetLabel] = "other" }, 403, cluster.ClusterSetLabel + ":other"},
		"a reserved label":  {"ann", func(c *v1.ManagedCluster) { c.Labels["info.open-cluster-management.io/region"] = "eu" }, 403, "managedclusters/label"},
		"accept":            {"ann", func(c *v1.ManagedCluster) { c.Spec.HubAcceptsClient = true }, 403, "managedclusters/accept"},
		"accept by name":    {"nan", func(c *v1.ManagedCluster) { c.Spec.HubAcceptsClient = true }, 403, "managedclusters/accept"},
		"a hub's finalizer": {"ann", func(c *v1.ManagedCluster) { c.Finalizers = []string{cluster.GroupName + "/x"} }, 403, "managedclusters/finalizers"},
		"an owner": {"ann", func(c *v1.ManagedCluster) {
			c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "u"}}
		}, 403, "delete"},
		"status":              {"ann", func(c *v1.ManagedCluster) { c.Status.Version.Kubernetes = "v9" }, 200, ""},
		"accepted at":         {"ann", func(c *v1.ManagedCluster) { c.Annotations = map[string]string{cluster.AcceptedAtAnnotation: "x"} }, 200, ""},
		"the UID of another":  {"ann", func(c *v1.ManagedCluster) { c.UID = "other" }, 409, "UID"},
		"the name of another": {"ann", func(c *v1.ManagedCluster) { c.Name = "c2" }, 400, "name"},
		"too large":           {"ann", func(c *v1.ManagedCluster) { c.Annotations = map[string]string{"a": strings.Repeat("x", 300<<10)} }, 422, ""},
		"a viewer":            {"bob", func(c *v1.ManagedCluster) { c.Labels["a"] = "b" }, 403, "managedclustersets/clusters"},
		"rights on others":    {"xan", func(c *v1.ManagedCluster) { c.Labels["a"] = "b" }, 403, "managedclustersets/clusters"},
	} {
		for way, write := range ways {
			for _, query := range []string{"", "?dryRun=All"} {
				t.Run(name+"/"+way+query, func(t *testing.T) {
					h.t = t
					was := h.stored("c1")
					before := h.must("root", http.MethodGet, viewedPath+"/c1", "", "").cluster
					after := *before.DeepCopy()
					attack.change(&after)
					got := write(h, attack.who, query, before, after)
					// Ways other than an update may be rejected earlier, for a different reason.
					exact := way == "update" || attack.code == http.StatusForbidden
					if (got.code < 300) != (attack.code < 300) || exact && (got.code != attack.code || !strings.Contains(got.body, attack.says)) {
						t.Errorf("got %d %s, want %d that says %q", got.code, got.body, attack.code, attack.says)
					}
					is := h.stored("c1")
					was.ManagedFields, is.ManagedFields, was.ResourceVersion = nil, nil, is.ResourceVersion
					if encoded(t, was) != encoded(t, is) {
						t.Errorf("stored is %+v, which was %+v", is, was)
					}
				})
			}
		}
	}
}

// TestViewedWrites_InvisibleClustersAreNotFound verifies that users who may not see a cluster cannot find out whether it exists.
func TestViewedWrites_InvisibleClustersAreNotFound(t *testing.T) {
	h := withFleet(t)
	for _, kind := range []string{mergeType, "application/json-patch+json", "application/strategic-merge-patch+json", "application/apply-patch+yaml", ""} {
		body, method := `{"metadata":{"labels":{"a":"b"}}}`, http.MethodPatch
		if strings.Contains(kind, "json-patch") {
			body = `[{"op":"test","path":"/metadata/labels/a","value":"b"}]`
		}
		said := map[string]string{}
		for _, name := range []string{"o1", "nowhere"} {
			sent := body
			if kind == "" || strings.Contains(kind, "apply") {
				sent = `{"apiVersion":"clusterview.open-cluster-management.io/v1","kind":"ManagedCluster","metadata":{"name":"` + name + `"}}`
			}
			contentType := kind
			if kind == "" {
				method, contentType = http.MethodPut, "application/json"
			}
			got := h.do("ann", method, viewedPath+"/"+name+"?fieldManager=x", contentType, sent)
			if got.code != http.StatusForbidden {
				t.Errorf("%s of %s: %d %s, want 403", kind, name, got.code, got.body)
			}
			said[name] = strings.ReplaceAll(got.body, name, "NAME")
		}
		if said["o1"] != said["nowhere"] {
			t.Errorf("%s: what is there gives %s, what is not there %s", kind, said["o1"], said["nowhere"])
		}
	}
	if got := h.do("root", http.MethodPost, viewedPath, "application/json", "{}"); got.code != http.StatusMethodNotAllowed {
		t.Errorf("create: %d %s, want 405", got.code, got.body)
	}
	if got := h.do("root", http.MethodPut, viewedPath+"/c1/status", "application/json", "{}"); got.code != http.StatusNotFound {
		t.Errorf("status: %d %s, want 404", got.code, got.body)
	}
}

// TestViewedWrites_Succeed verifies that writes by name and by set succeed in all ways, with the verb of the way.
func TestViewedWrites_Succeed(t *testing.T) {
	h := withFleet(t)
	for _, who := range []string{"ann", "nan", "put"} {
		for way, write := range ways {
			before := h.must(who[:3], http.MethodGet, viewedPath+"/c1", "", "").cluster
			after := *before.DeepCopy()
			after.Labels["by"] = who + "." + strings.ReplaceAll(way, " ", ".")
			if got := write(h, who, "?dryRun=All", before, after); who != "put" && (got.code != 200 || got.cluster.Labels["by"] != after.Labels["by"]) {
				t.Errorf("%s of %s in a dry run: %d %s", way, who, got.code, got.body)
			}
			if stored := h.stored("c1"); stored.Labels["by"] != before.Labels["by"] {
				t.Fatalf("a dry run has changed the labels to %v", stored.Labels)
			}
			got := write(h, who, "", before, after)
			if who == "put" && way != "update" {
				if got.code != http.StatusForbidden || !strings.Contains(got.body, "patch") {
					t.Errorf("%s without the verb: %d %s", way, got.code, got.body)
				}
				continue
			}
			if got.code != 200 || got.cluster.APIVersion != "clusterview.open-cluster-management.io/v1" || !maps.Equal(got.cluster.Labels, after.Labels) {
				t.Fatalf("%s of %s: %d %s", way, who, got.code, got.body)
			}
			if stored := h.stored("c1"); !maps.Equal(stored.Labels, after.Labels) {
				t.Errorf("%s: the labels are %v, want %v", way, stored.Labels, after.Labels)
			}
		}
	}
}

// TestViewedWrites_AreAdmittedAsStoredClusterWrites verifies that admission gets a write of the stored cluster, once.
func TestViewedWrites_AreAdmittedAsStoredClusterWrites(t *testing.T) {
	h := withFleet(t)
	var seen []admission.Attributes
	h.before = func(a admission.Attributes) { seen = append(seen, a) }
	h.must("ann", http.MethodPatch, viewedPath+"/c1", mergeType, `{"metadata":{"labels":{"a":"b"}}}`)
	if len(seen) != 1 {
		t.Fatalf("admission was asked %d times", len(seen))
	}
	a := seen[0]
	if a.GetResource() != v1.SchemeGroupVersion.WithResource("managedclusters") || a.GetKind() != v1.SchemeGroupVersion.WithKind("ManagedCluster") ||
		a.GetName() != "c1" || a.GetUserInfo().GetName() != "ann" || a.GetSubresource() != "" || a.GetOperation() != admission.Update {
		t.Errorf("admission was asked about %v %v %s", a.GetResource(), a.GetKind(), a.GetName())
	}
	if version := a.GetObject().(*cluster.ManagedCluster).ResourceVersion; version != a.GetOldObject().(*cluster.ManagedCluster).ResourceVersion {
		t.Errorf("the versions differ: %s", version)
	}
}

// TestViewedWrites_Versions verifies that a resource version that was read here is checked as a precondition, and that versions of the stored
// resource are never accepted.
func TestViewedWrites_Versions(t *testing.T) {
	h := withFleet(t)
	put := func(c v1.ManagedCluster, version string) answer {
		c.ResourceVersion = version
		return h.do("ann", http.MethodPut, viewedPath+"/c1", "application/json", encoded(t, c))
	}
	read := h.must("ann", http.MethodGet, viewedPath+"/c1", "", "").cluster
	first := read.ResourceVersion
	read.Labels["a"] = "1"
	got := put(read, first)
	if got.code != 200 {
		t.Fatalf("an update of what was read: %d %s", got.code, got.body)
	}
	stored := h.stored("c1").ResourceVersion
	if n, err := strconv.ParseUint(got.cluster.ResourceVersion, 10, 64); err != nil || strconv.FormatUint(position.RevisionOf(n), 10) != stored {
		t.Errorf("the answer is of version %s, stored is %s", got.cluster.ResourceVersion, stored)
	}
	for name, want := range map[string]struct {
		version string
		code    int
	}{"older": {first, 409}, "stored": {stored, 409}, "none": {"", 422}, "zero": {"0", 422}, "no version": {"x", 400}} {
		read.Labels["a"] = "2"
		if got := put(read, want.version); got.code != want.code {
			t.Errorf("%s: %d %s, want %d", name, got.code, got.body, want.code)
		}
	}
	other := read
	other.APIVersion = v1.SchemeGroupVersion.String()
	if got := put(other, got.cluster.ResourceVersion); got.code != http.StatusBadRequest {
		t.Errorf("an object of the stored resource: %d %s", got.code, got.body)
	}
	if h.stored("c1").ResourceVersion != stored {
		t.Error("the cluster was overwritten")
	}
	// The version in the response can be used for reads and writes.
	version := got.cluster.ResourceVersion
	if back := h.must("ann", http.MethodGet, viewedPath+"/c1?resourceVersion="+version, "", ""); back.cluster.Labels["a"] != "1" {
		t.Errorf("read after write gives %v", back.cluster.Labels)
	}
	patch := func(version string) answer {
		return h.do("ann", http.MethodPatch, viewedPath+"/c1", mergeType, `{"metadata":{"resourceVersion":"`+version+`","labels":{"a":"3"}}}`)
	}
	if got := patch(first); got.code != http.StatusConflict {
		t.Errorf("a patch of an older version: %d %s", got.code, got.body)
	}
	if got := patch(version); got.code != 200 {
		t.Errorf("a patch of the version: %d %s", got.code, got.body)
	}
}

// TestViewedWrites_RecheckAfterConflict verifies that the permission is checked for the object that is written: here another write happens
// after a first check has passed.
func TestViewedWrites_RecheckAfterConflict(t *testing.T) {
	h := withFleet(t)
	label := func(set string) {
		h.must("root", http.MethodPatch, storedPath+"/c2", mergeType, `{"metadata":{"labels":{"`+cluster.ClusterSetLabel+`":"`+set+`"}}}`)
	}
	for name, between := range map[string]struct{ do, undo func() }{
		"the cluster leaves the set": {func() { label("other") }, func() { label("mine") }},
		"the set is deleted": {func() {
			h.must("root", http.MethodDelete, "/apis/cluster.open-cluster-management.io/v1beta2/managedclustersets/mine", "", "")
			h.must("root", http.MethodPatch, storedPath+"/c2", mergeType, `{"metadata":{"labels":{"touched":"`+h.stored("c2").ResourceVersion+`"}}}`)
		}, func() { h.newSet("mine") }},
	} {
		for _, method := range []string{http.MethodPatch, http.MethodPut, "apply"} {
			read := h.must("ann", http.MethodGet, viewedPath+"/c2", "", "").cluster
			read.Labels["a"] = "b"
			asked := 0
			h.before = func(a admission.Attributes) {
				if a.GetUserInfo().GetName() == "ann" {
					asked++
					if asked == 1 {
						between.do()
					}
				}
			}
			body, contentType := `{"metadata":{"labels":{"a":"b"}}}`, mergeType
			if method == http.MethodPut {
				body, contentType = encoded(t, read), "application/json"
			}
			got := answer{}
			if method == "apply" {
				got = h.apply("ann", viewedPath, "c2", "fieldManager=m", `"a":"b"`, "")
			} else {
				got = h.do("ann", method, viewedPath+"/c2", contentType, body)
			}
			if got.code != http.StatusForbidden || asked != 1 {
				t.Errorf("%s, %s: %d %s after %d times, want 403 after 1", name, method, got.code, got.body, asked)
			}
			if stored := h.stored("c2"); stored.Labels["a"] != "" {
				t.Errorf("%s, %s: stored is %v", name, method, stored.Labels)
			}
			between.undo()
		}
	}
}

// TestViewedWrites_ManagersMatchStoredCluster verifies that a manager that writes by both paths is one manager, and that its version is the
// one of the stored resource.
func TestViewedWrites_ManagersMatchStoredCluster(t *testing.T) {
	h := withFleet(t)
	h.must("root", http.MethodPatch, storedPath+"/c1?fieldManager=m", mergeType, `{"metadata":{"labels":{"a":"1","b":"1"}}}`)
	h.must("ann", http.MethodPatch, viewedPath+"/c1?fieldManager=m", mergeType, `{"metadata":{"labels":{"b":"2","c":"2"}}}`)
	read := h.must("ann", http.MethodGet, viewedPath+"/c1", "", "").cluster
	read.Labels["d"] = "3"
	h.must("ann", http.MethodPut, viewedPath+"/c1?fieldManager=m", "application/json", encoded(t, read))
	own := 0
	for _, entry := range h.stored("c1").ManagedFields {
		if entry.APIVersion != v1.SchemeGroupVersion.String() {
			t.Errorf("%s is a manager of %s", entry.Manager, entry.APIVersion)
		}
		if entry.Manager != "m" {
			continue
		}
		own++
		fields := &fieldpath.Set{}
		if err := fields.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
			t.Fatal(err)
		}
		for _, label := range []string{"a", "b", "c", "d"} {
			if !fields.Has(fieldpath.MakePathOrDie("metadata", "labels", label)) {
				t.Errorf("the manager has not the label %s: %s", label, fields)
			}
		}
	}
	if own != 1 {
		t.Errorf("the manager is there %d times", own)
	}
	// An apply to the stored cluster conflicts with that manager.
	got := h.do("root", http.MethodPatch, storedPath+"/c1?fieldManager=other", "application/apply-patch+yaml",
		`{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedCluster","metadata":{"name":"c1","labels":{"c":"9"}}}`)
	if got.code != http.StatusConflict {
		t.Errorf("apply of a label of another manager: %d %s, want 409", got.code, got.body)
	}
}
