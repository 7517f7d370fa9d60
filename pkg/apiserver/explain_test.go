// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/test/await"
)

const inTeam = "/apis/cluster.open-cluster-management.io/v1beta1/namespaces/team/"

// readers returns the roles of users who read explanations, and may see different clusters.
func readers() roles {
	may := func(more ...rbacv1.PolicyRule) []rbacv1.PolicyRule {
		return append(more, rule("get", "placements/explain", "p"))
	}
	return roles{
		"nobody": may(),
		"blue":   may(rule("get", "managedclustersets/clusters", "blue")),
		"both":   may(rule("get", "managedclustersets/clusters", "blue", "red")),
		"all":    may(rule("get", "managedclustersets/clusters")),
		"named":  may(rule("get", "managedclusters", "red1")),
		"gone":   may(rule("get", "managedclusters", "gone")),
	}
}

// newTeam returns a hub with a placement p in the namespace team, and two sets with two clusters each, which are bound there.
func newTeam(t *testing.T, spec string) *viewedHub {
	h := newViewedHub(t, readers())
	for _, set := range []string{"blue", "red", "other"} {
		h.newSet(set)
	}
	for _, set := range []string{"blue", "red"} {
		h.must("root", http.MethodPost, strings.Replace(inTeam, "v1beta1", "v1beta2", 1)+"managedclustersetbindings", "application/json", fmt.Sprintf(
			`{"apiVersion":"cluster.open-cluster-management.io/v1beta2","kind":"ManagedClusterSetBinding","metadata":{"name":%q},"spec":{"clusterSet":%[1]q}}`, set))
		h.newCluster(set+"1", set)
		h.newCluster(set+"2", set)
	}
	h.newCluster("other1", "other")
	h.must("root", http.MethodPost, inTeam+"placements", "application/json",
		`{"apiVersion":"cluster.open-cluster-management.io/v1beta1","kind":"Placement","metadata":{"name":"p"},"spec":`+spec+`}`)
	return h
}

// explain reads an explanation, and retries while the server responds that it is too early.
func (h *viewedHub) explain(who, query string) (e v1beta1.PlacementExplanation, a answer) {
	h.t.Helper()
	deadline := time.Now().Add(await.Limit)
	for a = h.do(who, http.MethodGet, inTeam+"placements/p/explain"+query, "", ""); a.code == http.StatusTooManyRequests; {
		if time.Now().After(deadline) {
			h.t.Fatal(a.body)
		}
		time.Sleep(5 * time.Millisecond)
		a = h.do(who, http.MethodGet, inTeam+"placements/p/explain"+query, "", "")
	}
	if a.code == http.StatusOK {
		if err := json.Unmarshal([]byte(a.body), &e); err != nil || e.Kind != "PlacementExplanation" || e.Name != "p" || e.Namespace != "team" {
			h.t.Errorf("%v of %s", err, a.body)
		}
	}
	return e, a
}

// told returns a short form of an explanation.
func told(e v1beta1.PlacementExplanation) string {
	var parts []string
	for _, c := range e.Status.Clusters {
		part := fmt.Sprint(c.ClusterName, c.ClusterSets, c.FilteredBy)
		if c.Chosen {
			part += c.DecisionName
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " ")
}

func TestExplain_ReportsOnlyVisible(t *testing.T) {
	h := newTeam(t, `{"predicates":[{"requiredClusterSelector":{"labelSelector":{"matchExpressions":[{"key":"never","operator":"DoesNotExist"}]}}}]}`)
	const (
		blue = "blue1[blue]p-decision-1 blue2[blue]p-decision-1"
		red  = "red1[red]p-decision-1 red2[red]p-decision-1"
	)
	for who, want := range map[string]string{
		"nobody": "", "blue": blue, "both": blue + " " + red, "all": blue + " " + red, "root": blue + " " + red,
		"named": "red1[]p-decision-1",
	} {
		e, a := h.explain(who, "")
		if got := told(e); a.code != http.StatusOK || got != want {
			t.Errorf("%s is told %q, want %q (%d %s)", who, got, want, a.code, a.body)
		}
		shown := strings.Count(want, "p-decision")
		if e.Status.Partial != (shown < 4) || len(e.Status.Counts) != min(shown, 1) || shown > 0 && e.Status.Counts[0].Clusters != int32(shown) {
			t.Errorf("%s: partial %t, counts %v", who, e.Status.Partial, e.Status.Counts)
		}
		for _, hidden := range []string{"blue", "red", "other"} {
			if !strings.Contains(want, hidden) && strings.Contains(a.body, hidden) {
				t.Errorf("%s is told of %s: %s", who, hidden, a.body)
			}
		}
	}
	// The response for a cluster that the user may not see is the same as for one that does not exist.
	for who, clusters := range map[string]map[string]int{
		"nobody": {"blue1": 403, "gone": 403, "a/b": 404},
		"blue":   {"blue1": 200, "red1": 403, "other1": 403, "gone": 403},
		"named":  {"red1": 200, "red2": 403},
		"gone":   {"gone": 404},
		"all":    {"red2": 200, "other1": 200},
	} {
		bodies := map[string]string{}
		for name, code := range clusters {
			e, a := h.explain(who, "?cluster="+name)
			if a.code != code || code == 200 && (len(e.Status.Clusters) != 1 || e.Status.Clusters[0].ClusterName != name) {
				t.Errorf("%s asks for %s: %d %s, want %d", who, name, a.code, a.body, code)
			}
			if code == 403 && who == "blue" {
				bodies[strings.ReplaceAll(a.body, name, "NAME")] = name
			}
		}
		if len(bodies) > 1 {
			t.Errorf("%s can tell what is from what is not: %v", who, bodies)
		}
	}
	if e, _ := h.explain("all", "?cluster=other1"); e.Status.Clusters[0].FilteredBy != "ClusterSet" {
		t.Errorf("a cluster of another set: %s", told(e))
	}
}

// TestExplain_ScoresDiscloseNothing verifies that what a user is shown does not depend on clusters that the user may not see, except for those
// that are chosen.
func TestExplain_ScoresDiscloseNothing(t *testing.T) {
	h := newTeam(t, `{"numberOfClusters":2,"prioritizerPolicy":{"mode":"Exact","configurations":[
		{"scoreCoordinate":{"builtIn":"ResourceAllocatableCPU"},"weight":10},{"scoreCoordinate":{"builtIn":"Balance"}},
		{"scoreCoordinate":{"builtIn":"Steady"}},
		{"scoreCoordinate":{"type":"AddOn","addOn":{"resourceName":"load","scoreName":"free"}}}]}}`)
	cpu := func(name string, n int) {
		h.must("root", http.MethodPatch, storedPath+"/"+name+"/status", mergeType,
			fmt.Sprintf(`{"status":{"allocatable":{"cpu":"%d"},"capacity":{"cpu":"%[1]d"}}}`, n))
	}
	cpu("blue1", 10)
	cpu("blue2", 12)
	cpu("red1", 1)
	cpu("red2", 1)
	score := `{"apiVersion":"cluster.open-cluster-management.io/v1alpha1","kind":"AddOnPlacementScore","metadata":{"name":"load"}}`
	scores := "/apis/cluster.open-cluster-management.io/v1alpha1/namespaces/blue1/addonplacementscores"
	h.must("root", http.MethodPost, scores, "application/json", score)
	h.must("root", http.MethodPatch, scores+"/load/status", mergeType, `{"status":{"scores":[{"name":"free","value":7}]}}`)

	_, before := h.explain("blue", "")
	full, _ := h.explain("root", "")
	line := func(c v1beta1.ExplainedCluster) (text string) {
		for _, s := range c.Scores {
			text += " " + s.Name
			if s.Score != nil {
				text += fmt.Sprintf("=%d", *s.Score)
			}
		}
		if c.TotalScore != nil {
			text += fmt.Sprintf(" total=%d rank=%d", *c.TotalScore, *c.Rank)
		}
		return text
	}
	if got, want := line(full.Status.Clusters[0]), " ResourceAllocatableCPU=63 Balance=100 Steady=0 AddOn/load/free=7 total=737 rank=2"; got != want {
		t.Errorf("blue1:%s, want%s", got, want)
	}
	e, _ := h.explain("blue", "")
	if got, want := line(e.Status.Clusters[0]), " ResourceAllocatableCPU Balance Steady=0 AddOn/load/free=7"; got != want {
		t.Errorf("blue1 for who sees blue:%s, want%s", got, want)
	}
	e, _ = h.explain("both", "")
	if got, want := line(e.Status.Clusters[0]), " ResourceAllocatableCPU=63 Balance Steady=0 AddOn/load/free=7"; got != want {
		t.Errorf("blue1 for who sees both sets:%s, want%s", got, want)
	}

	// Clusters that the user may not see are created and changed.
	h.newCluster("red3", "red")
	cpu("red1", 4)
	decision := `{"apiVersion":"cluster.open-cluster-management.io/v1beta1","kind":"PlacementDecision","metadata":{"name":"x","labels":{%q:"x"}}}`
	path := strings.Replace(inTeam, "team", "elsewhere", 1) + "placementdecisions"
	h.must("root", http.MethodPost, path, "application/json", fmt.Sprintf(decision, cluster.PlacementLabel))
	h.must("root", http.MethodPatch, path+"/x/status", mergeType, `{"status":{"decisions":[{"clusterName":"blue1","reason":""},{"clusterName":"red1","reason":""}]}}`)
	if _, after := h.explain("blue", ""); after.body != before.body {
		t.Errorf("before %s\nafter  %s", before.body, after.body)
	}
	if after, _ := h.explain("root", ""); line(after.Status.Clusters[0]) == line(full.Status.Clusters[0]) {
		t.Error("what was changed changes no score, so this shows nothing")
	}
}

// TestExplain_IsRateLimited verifies that a user who sends requests in a loop must wait.
func TestExplain_IsRateLimited(t *testing.T) {
	h := newTeam(t, `{}`)
	for deadline := time.Now().Add(await.Limit); ; {
		a := h.do("all", http.MethodGet, inTeam+"placements/p/explain", "", "")
		if a.code == http.StatusTooManyRequests {
			if !strings.Contains(a.body, `"retryAfterSeconds":`) {
				t.Error(a.body)
			}
			return
		}
		if a.code != http.StatusOK || time.Now().After(deadline) {
			t.Fatalf("%d %s", a.code, a.body)
		}
	}
}

func TestExplain_Pages(t *testing.T) {
	h := newTeam(t, `{"numberOfClusters":1}`)
	var all []string
	query := "?limit=3"
	for {
		e, a := h.explain("root", query)
		if a.code != http.StatusOK || len(e.Status.Clusters) > 3 {
			t.Fatalf("%s: %d %s", query, a.code, a.body)
		}
		for _, c := range e.Status.Clusters {
			all = append(all, c.ClusterName)
		}
		if want := []v1beta1.ExplainedCount{{Clusters: 1}, {FilteredBy: "NumberOfClusters", Clusters: 3}}; !slices.Equal(e.Status.Counts, want) {
			t.Errorf("counts: %v, want %v", e.Status.Counts, want)
		}
		if e.Status.Continue == "" {
			break
		}
		query = "?limit=3&continue=" + e.Status.Continue
	}
	if want := []string{"blue1", "blue2", "red1", "red2"}; !slices.Equal(all, want) {
		t.Errorf("got %v, want %v", all, want)
	}
	for _, bad := range []string{"?limit=-1", "?limit=10001", "?limit=x", "?cluster=blue1&limit=1", "?cluster=blue1&continue=a"} {
		if _, a := h.explain("root", bad); a.code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", bad, a.code, a.body)
		}
	}
	if a := h.do("root", http.MethodGet, strings.Replace(inTeam, "team", "nowhere", 1)+"placements/p/explain", "", ""); a.code != http.StatusNotFound {
		t.Errorf("no placement: %d %s", a.code, a.body)
	}
	if a := h.do("root", http.MethodPost, inTeam+"placements/p/explain", "application/json", "{}"); a.code != http.StatusMethodNotAllowed {
		t.Errorf("a write: %d %s", a.code, a.body)
	}
}
