// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placementdecision

import (
	"context"
	"testing"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/registry/generic/registrytest"
)

func decision(name, placement string) *cluster.PlacementDecision {
	return &cluster.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: registrytest.Namespace, Name: name, Labels: map[string]string{cluster.PlacementLabel: placement},
	}}
}

func TestStorage(t *testing.T) {
	registrytest.Suite[*cluster.PlacementDecision]{
		Kind:  Kind,
		Valid: func() *cluster.PlacementDecision { return decision("web-decision-1", "web") },
		Invalid: []func(*cluster.PlacementDecision){
			func(d *cluster.PlacementDecision) { d.Labels["a"] = "no spaces" },
		},
		Change: func(d *cluster.PlacementDecision) { d.Labels["env"] = "z" },
		InvalidChanges: []func(*cluster.PlacementDecision){
			func(d *cluster.PlacementDecision) { d.Labels["a"] = "no spaces" },
		},
		Status: func(d *cluster.PlacementDecision) {
			d.Status.Decisions = []cluster.ClusterDecision{{ClusterName: "c1"}}
		},
		BadStatus: func(d *cluster.PlacementDecision) {
			d.Status.Decisions = []cluster.ClusterDecision{{ClusterName: "c1"}, {ClusterName: "c1"}}
		},
		Columns: "Name/0 Age/0",
		Cells:   "web-decision-1|<unknown>",
	}.Run(t)
}

func TestStorage_ListsDecisionsOfPlacement(t *testing.T) {
	s := registrytest.NewStorage(t, registrytest.NewEtcd(t), Kind, nil)
	for _, d := range []*cluster.PlacementDecision{decision("web-decision-1", "web"), decision("web-decision-2", "web"), decision("api-decision-1", "api")} {
		registrytest.Create(t, registrytest.Context(s), s, d)
	}
	list := func(ctx context.Context, placement string) int {
		t.Helper()
		found, err := s.List(ctx, &metainternalversion.ListOptions{LabelSelector: labels.SelectorFromSet(labels.Set{cluster.PlacementLabel: placement})})
		if err != nil {
			t.Fatal(err)
		}
		return len(found.(*cluster.PlacementDecisionList).Items)
	}
	for placement, want := range map[string]int{"web": 2, "api": 1, "none": 0} {
		if got := list(registrytest.Context(s), placement); got != want {
			t.Errorf("%d decisions of %s, want %d", got, placement, want)
		}
	}
}
