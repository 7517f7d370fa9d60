// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	v1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	clusterviewv1 "github.com/clusterhub/clusterhub/pkg/apis/clusterview/v1"
)

const applyType = "application/apply-patch+yaml"

// apply applies metadata and other fields of a cluster, such as `"spec":{}`, by one of the two paths.
func (h *viewedHub) apply(who, path, name, query, labels, more string) answer {
	h.t.Helper()
	version := v1.SchemeGroupVersion.String()
	if path == viewedPath {
		version = clusterviewv1.SchemeGroupVersion.String()
	}
	if more != "" {
		more = "," + more
	}
	return h.do(who, http.MethodPatch, path+"/"+name+"?"+query, applyType,
		fmt.Sprintf(`{"apiVersion":%q,"kind":"ManagedCluster","metadata":{"name":%q,"labels":{%s}}%s}`, version, name, labels, more))
}

// applied applies a cluster in its previous state and then in its desired state with the same, only manager.
func applied(h *viewedHub, who, query string, before, after v1.ManagedCluster) answer {
	owner := "/" + before.Name + "?force=true&fieldManager=applier"
	before.APIVersion = v1.SchemeGroupVersion.String()
	for _, set := range []string{"other", before.Labels[cluster.ClusterSetLabel]} { // changing a label takes its ownership from other managers
		before.Labels = maps.Clone(before.Labels)
		before.Labels[cluster.ClusterSetLabel] = set
		h.must("root", http.MethodPatch, storedPath+owner, applyType, asApplied(h.t, before))
	}
	return h.do(who, http.MethodPatch, viewedPath+owner+"&"+strings.TrimPrefix(query, "?"), applyType, asApplied(h.t, after))
}

func asApplied(t *testing.T, c v1.ManagedCluster) string {
	c.ManagedFields, c.ResourceVersion = nil, ""
	return encoded(t, c)
}

// managersOf returns the fields of each manager of a cluster. It verifies that they are in the version of the stored resource.
func managersOf(t *testing.T, c v1.ManagedCluster) map[string]*fieldpath.Set {
	t.Helper()
	all := map[string]*fieldpath.Set{}
	for _, entry := range c.ManagedFields {
		key := fmt.Sprint(entry.Manager, " ", entry.Operation, " ", entry.Subresource)
		if all[key] != nil || entry.APIVersion != v1.SchemeGroupVersion.String() {
			t.Errorf("%s is a manager by %s, there twice: %v", key, entry.APIVersion, all[key] != nil)
		}
		all[key] = &fieldpath.Set{}
		if err := all[key].FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// causes returns the conflicts of an apply.
func causes(t *testing.T, a answer) (fields []string) {
	t.Helper()
	var status metav1.Status
	if err := json.Unmarshal([]byte(a.body), &status); err != nil {
		t.Fatal(err)
	}
	if status.Details == nil {
		return nil
	}
	for _, cause := range status.Details.Causes {
		message, _, _ := strings.Cut(cause.Message, " at ") // without the time
		fields = append(fields, cause.Field+": "+message)
	}
	slices.Sort(fields)
	return fields
}

// TestViewedApply_AppliesToStoredCluster verifies that a manager that applies by both paths is one manager: it has the same conflicts, and
// prunes what it applied by the other path.
func TestViewedApply_AppliesToStoredCluster(t *testing.T) {
	h := withFleet(t)
	ok := func(a answer) answer {
		t.Helper()
		if a.code != http.StatusOK {
			t.Fatalf("%d %s", a.code, a.body)
		}
		return a
	}
	has := func(want map[string]string) {
		t.Helper()
		want[cluster.ClusterSetLabel] = "mine"
		if got := h.stored("c1").Labels; !maps.Equal(got, want) {
			t.Fatalf("the labels are %v, want %v", got, want)
		}
	}
	ok(h.apply("ann", viewedPath, "c1", "fieldManager=m&dryRun=All", `"a":"0"`, ""))
	has(map[string]string{})
	var seen []admission.Attributes
	h.before = func(a admission.Attributes) { seen = append(seen, a) }
	first := ok(h.apply("ann", viewedPath, "c1", "fieldManager=m", `"a":"1","b":"1"`, `"status":{"version":{"kubernetes":"v9"}}`))
	if len(seen) != 1 || seen[0].GetResource() != v1.SchemeGroupVersion.WithResource("managedclusters") || seen[0].GetOperation() != admission.Update {
		t.Errorf("admission was asked %d times: %v", len(seen), seen)
	}
	h.before = nil
	if first.cluster.APIVersion != clusterviewv1.SchemeGroupVersion.String() || first.cluster.Labels["a"] != "1" {
		t.Errorf("the answer is %s", first.body)
	}
	has(map[string]string{"a": "1", "b": "1"})
	want := fieldpath.NewSet(fieldpath.MakePathOrDie("metadata", "labels", "a"), fieldpath.MakePathOrDie("metadata", "labels", "b"))
	if got := managersOf(t, h.stored("c1"))["m Apply "]; got == nil || !got.Leaves().Equals(want) {
		t.Errorf("the manager has %s, want %s", got, want)
	}
	// Applying the same again does not write.
	if again := ok(h.apply("ann", viewedPath, "c1", "fieldManager=m", `"a":"1","b":"1"`, "")); again.cluster.ResourceVersion != first.cluster.ResourceVersion {
		t.Errorf("an apply of what is there has made version %s of %s", again.cluster.ResourceVersion, first.cluster.ResourceVersion)
	}
	// A field that is no longer applied is removed, by either path.
	ok(h.apply("root", storedPath, "c1", "fieldManager=m", `"a":"1","c":"1"`, ""))
	has(map[string]string{"a": "1", "c": "1"})
	ok(h.apply("ann", viewedPath, "c1", "fieldManager=m", `"a":"1"`, ""))
	has(map[string]string{"a": "1"})

	// A field of another manager is a conflict that names it, whether that manager applied or updated it, and by either path.
	ok(h.apply("root", storedPath, "c1", "fieldManager=plain-applier", `"d":"1"`, ""))
	h.must("root", http.MethodPatch, storedPath+"/c1?fieldManager=plain-writer", mergeType, `{"metadata":{"labels":{"e":"1"}}}`)
	h.must("ann", http.MethodPatch, viewedPath+"/c1?fieldManager=writer", mergeType, `{"metadata":{"labels":{"f":"1"}}}`)
	labels := `"a":"1","d":"2","e":"2","f":"2"`
	refused := h.apply("ann", viewedPath, "c1", "fieldManager=m", labels, "")
	conflicts := strings.Join(causes(t, refused), "; ")
	if refused.code != http.StatusConflict || conflicts != `.metadata.labels.d: conflict with "plain-applier"; `+
		`.metadata.labels.e: conflict with "plain-writer" using cluster.open-cluster-management.io/v1; `+
		`.metadata.labels.f: conflict with "writer" using cluster.open-cluster-management.io/v1` {
		t.Errorf("got %d %s", refused.code, conflicts)
	}
	if plain := h.apply("root", storedPath, "c1", "fieldManager=m", labels, ""); strings.Join(causes(t, plain), "; ") != conflicts {
		t.Errorf("an apply to the stored cluster has the conflicts %s, here they are %s", causes(t, plain), conflicts)
	}
	has(map[string]string{"a": "1", "d": "1", "e": "1", "f": "1"})
	ok(h.apply("ann", viewedPath, "c1", "fieldManager=m&force=true", labels, ""))
	has(map[string]string{"a": "1", "d": "2", "e": "2", "f": "2"})
	managers := managersOf(t, h.stored("c1"))
	for _, other := range []string{"plain-applier Apply ", "plain-writer Update ", "writer Update "} {
		if managers[other] != nil {
			t.Errorf("%s still has %s", other, managers[other])
		}
	}
}

// TestViewedApply_Rejects verifies that an apply does not create clusters, and says so only to users who may know that the cluster does
// not exist, and that the options of an apply are the usual ones.
func TestViewedApply_Rejects(t *testing.T) {
	h := withFleet(t)
	before := encoded(t, h.stored("c1"))
	body := func(version, name, metadata string) string {
		return fmt.Sprintf(`{"apiVersion":%q,"kind":"ManagedCluster","metadata":{"name":%q%s}}`, version, name, metadata)
	}
	view := clusterviewv1.SchemeGroupVersion.String()
	for what, c := range map[string]struct {
		who, path, query, body string
		code                   int
		says                   string
	}{
		"what is not there": {"root", "/nowhere", "fieldManager=m", body(view, "nowhere", ""), 404,
			"creates nothing, apply a new cluster as one of the managedclusters.cluster.open-cluster-management.io"},
		"what is not seen":           {"ann", "/nowhere", "fieldManager=m", body(view, "nowhere", ""), 403, "managedclustersets/clusters"},
		"by a viewer":                {"bob", "/c1", "fieldManager=m", body(view, "c1", ""), 403, "to patch the cluster"},
		"without the verb":           {"put", "/c1", "fieldManager=m", body(view, "c1", ""), 403, "to patch the cluster"},
		"the status":                 {"root", "/c1/status", "fieldManager=m", body(view, "c1", ""), 404, ""},
		"without a manager":          {"ann", "/c1", "", body(view, "c1", ""), 422, "fieldManager"},
		"as the stored resource":     {"ann", "/c1", "fieldManager=m", body(v1.SchemeGroupVersion.String(), "c1", ""), 400, "invalid object type"},
		"with managers":              {"ann", "/c1", "fieldManager=m", body(view, "c1", `,"managedFields":[{"manager":"x"}]`), 400, "managedFields"},
		"of an older version":        {"ann", "/c1", "fieldManager=m", body(view, "c1", `,"resourceVersion":"1"`), 409, "has been changed"},
		"of the stored version":      {"ann", "/c1", "fieldManager=m", body(view, "c1", `,"resourceVersion":"`+h.stored("c1").ResourceVersion+`"`), 409, ""},
		"of no version":              {"ann", "/c1", "fieldManager=m", body(view, "c1", `,"resourceVersion":"x"`), 400, ""},
		"of the UID of another":      {"ann", "/c1", "fieldManager=m", body(view, "c1", `,"uid":"x"`), 422, "metadata.uid"},
		"what is there and not seen": {"ann", "/o1", "fieldManager=m", body(view, "o1", ""), 403, "managedclustersets/clusters"},
	} {
		got := h.do(c.who, http.MethodPatch, viewedPath+c.path+"?"+c.query, applyType, c.body)
		if got.code != c.code || !strings.Contains(got.body, c.says) {
			t.Errorf("%s: %d %s, want %d that says %q", what, got.code, got.body, c.code, c.says)
		}
	}
	if after := encoded(t, h.stored("c1")); after != before {
		t.Errorf("the cluster is %s, and was %s", after, before)
	}
	if got := h.do("root", http.MethodGet, storedPath+"/nowhere", "", ""); got.code != http.StatusNotFound {
		t.Errorf("an apply of what is not there: %d %s", got.code, got.body)
	}
}
