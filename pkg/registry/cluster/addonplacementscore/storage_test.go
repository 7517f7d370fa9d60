// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package addonplacementscore

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/registry/generic/registrytest"
)

func TestStorage(t *testing.T) {
	registrytest.Suite[*cluster.AddOnPlacementScore]{
		Kind: Kind,
		Valid: func() *cluster.AddOnPlacementScore {
			return &cluster.AddOnPlacementScore{ObjectMeta: metav1.ObjectMeta{Name: "load", Labels: map[string]string{}}}
		},
		Invalid: []func(*cluster.AddOnPlacementScore){
			func(s *cluster.AddOnPlacementScore) { s.Labels["a"] = "no spaces" },
		},
		Change: func(s *cluster.AddOnPlacementScore) { s.Labels["env"] = "z" },
		InvalidChanges: []func(*cluster.AddOnPlacementScore){
			func(s *cluster.AddOnPlacementScore) { s.Labels["a"] = "no spaces" },
		},
		Status: func(s *cluster.AddOnPlacementScore) {
			s.Status.Scores = []cluster.AddOnPlacementScoreItem{{Name: "cpu", Value: -100}, {Name: "memory", Value: 100}}
		},
		BadStatus: func(s *cluster.AddOnPlacementScore) { s.Status.Scores[0].Value = -101 },
		Columns:   "Name/0 Age/0",
		Cells:     "load|<unknown>",
	}.Run(t)
}
