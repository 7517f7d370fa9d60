// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/diagnosis"
)

// placementFacts reads the explanation of the hub, and what is needed to describe how to change it.
func (h *HubView) placementFacts(ctx context.Context, facts *diagnosis.PlacementFacts) error {
	explanation, err := h.Explain(ctx, facts.Namespace, facts.Name, facts.Cluster)
	facts.ClusterMissing = IsMissing(err, "managedclusters")
	if !facts.ClusterMissing {
		facts.Explanation, err = asRead(explanation, err, "get placements/explain in the namespace "+facts.Namespace)
		if err != nil {
			return err
		}
	}
	if _, ok := facts.Explanation.Get(); !ok {
		return nil
	}
	placement, err := h.clusters.ClusterV1beta1().Placements(facts.Namespace).Get(ctx, facts.Name, metav1.GetOptions{})
	facts.Placement, err = asRead(placement, err, "get placements in the namespace "+facts.Namespace+", which have the requirements")
	if err != nil {
		return err
	}
	facts.Sets, err = h.setsOf(ctx, facts.Cluster)
	if err != nil {
		return err
	}
	list, err := h.clusters.ClusterV1beta2().ManagedClusterSetBindings(facts.Namespace).List(ctx, metav1.ListOptions{})
	var bound []string
	if err == nil {
		for i := range list.Items {
			bound = append(bound, list.Items[i].Spec.ClusterSet)
		}
		slices.Sort(bound)
	}
	facts.Bound, err = asRead(bound, err, "list managedclustersetbindings in the namespace "+facts.Namespace)
	return err
}
