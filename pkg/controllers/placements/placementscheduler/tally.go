// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placementscheduler

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

var placementsDescription = prometheus.NewDesc("clusterhub_placements",
	"Placements by whether all clusters that they request were found.", []string{"satisfied"}, nil)

const satisfied, unsatisfied, undecided = "true", "false", "unknown"

func newTally() *kit.Tally[*clusterv1beta1.Placement] {
	return kit.NewTally(placementsDescription, func(p *clusterv1beta1.Placement) []string {
		switch c := meta.FindStatusCondition(p.Status.Conditions, clusterv1beta1.PlacementConditionSatisfied); {
		case c == nil || c.Status == metav1.ConditionUnknown:
			return []string{undecided}
		case c.Status == metav1.ConditionTrue:
			return []string{satisfied}
		}
		return []string{unsatisfied}
	}, []string{satisfied}, []string{unsatisfied}, []string{undecided})
}
