// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placementexplanation

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/placement/run"
	"github.com/clusterhub/clusterhub/pkg/placement/spec"
)

// sees has the sets whose clusters a reader sees, which have names with the names of the sets as prefixes.
type sees []string

func (s sees) Shows(cluster string) bool {
	return slices.ContainsFunc(s, func(set string) bool { return strings.HasPrefix(cluster, set) })
}
func (s sees) ShowsSet(set string) bool { return slices.Contains(s, set) }
func (s sees) ShowsAll() bool           { return false }

// TestShow_ProblemsDoNotCount: a problem may count the clusters, and name sets.
func TestShow_ProblemsDoNotCount(t *testing.T) {
	p := &v1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns"}}
	all := func() *run.Explained {
		return &run.Explained{Problem: "too much for 17 clusters", Sets: []string{"blue", "red"},
			Clusters: []run.Explanation{{Cluster: "blue1", Sets: []string{"blue", "red"}}, {Cluster: "red1", Sets: []string{"red"}}}}
	}
	asked := &cluster.PlacementExplainOptions{Limit: 10}
	got := show(p, all(), sees{"blue"}, asked)
	if c := got.Status.Clusters; len(c) != 1 || !slices.Equal(c[0].ClusterSets, []string{"blue"}) || len(got.Status.Counts) != 0 {
		t.Errorf("%+v", got.Status)
	}
	if !got.Status.Partial || strings.Contains(got.Status.Problem, "17") || got.Status.Problem == "" {
		t.Errorf("%t %q", got.Status.Partial, got.Status.Problem)
	}
	if got := show(p, all(), sees{"blue", "red"}, asked); got.Status.Partial || got.Status.Problem != "too much for 17 clusters" {
		t.Errorf("%t %q", got.Status.Partial, got.Status.Problem)
	}
	p.Annotations = map[string]string{v1beta1.PlacementDisableAnnotation: "true"}
	if got := show(p, all(), sees{"blue"}, asked); !strings.Contains(got.Status.Problem, v1beta1.PlacementDisableAnnotation) {
		t.Errorf("%q", got.Status.Problem)
	}
}

// TestShow_TotalsHideScores: a score that compares a cluster with others also hides the total and the rank.
func TestShow_TotalsHideScores(t *testing.T) {
	p := &v1beta1.Placement{}
	scored := func(name string, total int64, compared spec.Compared) run.Explanation {
		return run.Explanation{Cluster: name, Passed: true, Total: total,
			Scores: []run.PrioritizerScore{{Name: "x", Weight: 1, Score: total, Compared: compared}}}
	}
	for compared, shown := range map[spec.Compared]bool{spec.WithNone: true, spec.WithPlacement: false, spec.WithHub: false} {
		all := &run.Explained{Sets: []string{"blue", "red"}, Clusters: []run.Explanation{
			scored("blue1", 1, compared), scored("blue2", 3, compared), scored("blue3", 3, compared), scored("red1", 2, compared), {Cluster: "blue4"}}}
		clusters := show(p, all, sees{"blue"}, &cluster.PlacementExplainOptions{Limit: 10}).Status.Clusters
		for i, rank := range []int32{3, 1, 2} {
			c := clusters[i]
			if !shown {
				if c.Scores[0].Score != nil || c.TotalScore != nil || c.Rank != nil {
					t.Errorf("%d: %+v", compared, c)
				}
			} else if *c.TotalScore != int64(*c.Scores[0].Score) || *c.Rank != rank {
				t.Errorf("%d: %+v with rank %d, want %d", compared, c, *c.Rank, rank)
			}
		}
		if clusters[3].Rank != nil {
			t.Error("a cluster that has not passed has a rank")
		}
	}
}
