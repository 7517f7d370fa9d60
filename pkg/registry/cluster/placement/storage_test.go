// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/registry/generic/registrytest"
)

// placementOf returns a placement with the defaults that decoding sets.
func placementOf(name string) *cluster.Placement {
	p := &cluster.Placement{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.PrioritizerPolicy.Mode = cluster.PrioritizerPolicyModeAdditive
	p.Spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup = intstr.FromString("100%")
	p.Spec.SortBy, p.Spec.ScoreRateLimit = cluster.PlacementSortByClusterName, "1m"
	return p
}

func TestStorage(t *testing.T) {
	registrytest.Suite[*cluster.Placement]{
		Kind:  Kind,
		Valid: func() *cluster.Placement { return placementOf("web") },
		Invalid: []func(*cluster.Placement){
			func(p *cluster.Placement) { p.Name = strings.Repeat("a", 64) },
			func(p *cluster.Placement) { p.Spec.NumberOfClusters = new(int32(-1)) },
			selecting("invalid.expression"),
		},
		Change: func(p *cluster.Placement) { p.Spec.NumberOfClusters = new(int32(3)) },
		InvalidChanges: []func(*cluster.Placement){
			func(p *cluster.Placement) {
				p.Spec.Tolerations = []cluster.Toleration{{Operator: cluster.TolerationOpEqual}}
			},
		},
		Status: func(p *cluster.Placement) {
			p.Status.NumberOfSelectedClusters = 2
			p.Status.Conditions = []metav1.Condition{{
				Type: "PlacementSatisfied", Status: "False", Reason: "NotAllDecisionsScheduled", LastTransitionTime: metav1.Unix(1, 0),
			}}
		},
		BadStatus: func(p *cluster.Placement) { p.Status.NumberOfSelectedClusters = -1 },
		Columns:   "Name/0 Succeeded/0 Reason/0 SelectedClusters/0 Age/1",
		Cells:     "web|False|NotAllDecisionsScheduled|2|<unknown>",
	}.Run(t)
}
