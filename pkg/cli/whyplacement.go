// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/diagnosis"
)

func (g *global) newWhyPlacementCommand() *cobra.Command {
	o, in, cluster := g.newWhy(), &inNamespace{global: g}, ""
	cmd := &cobra.Command{
		Use:   "placement PLACEMENT --cluster CLUSTER",
		Short: "Say why a placement chooses a cluster, or does not",
		Long: "why placement says at which step a cluster falls out of a placement, and what would change that. The hub computes the steps as its scheduler does; kubectl hub " +
			"explain placement shows them for all clusters. This needs the permission to get placements/explain in the namespace." + whyExit,
		Example:           example("kubectl hub why placement web -n dev --cluster berlin-1"),
		Args:              oneArg("a placement"),
		ValidArgsFunction: first(g.names(in.placementNames)),
		RunE: func(cmd *cobra.Command, args []string) error {
			namespace, err := in.name()
			if err != nil {
				return err
			}
			h, err := g.hub()
			if err != nil {
				return err
			}
			facts := diagnosis.PlacementFacts{Namespace: namespace, Name: args[0], Cluster: cluster}
			if err := h.placementFacts(cmd.Context(), &facts); err != nil {
				return err
			}
			a := diagnosis.OfPlacement(facts)
			return o.finish(&a)
		},
	}
	in.addTo(cmd, "the placement")
	cmd.Flags().StringVar(&cluster, "cluster", "", "The cluster. It is required.")
	must(cmd.MarkFlagRequired("cluster"))
	must(cmd.RegisterFlagCompletionFunc("cluster", g.names(clusterNames)))
	o.out.addTo(cmd)
	return cmd
}

// placementFacts reads the explanation of the hub, and what is needed to say how to change it.
func (h *hub) placementFacts(ctx context.Context, facts *diagnosis.PlacementFacts) error {
	explanation, err := h.explain(ctx, facts.Namespace, facts.Name, facts.Cluster)
	if facts.ClusterMissing = isMissing(err, "managedclusters"); !facts.ClusterMissing {
		if facts.Explanation, err = look(explanation, err, "get placements/explain in the namespace "+facts.Namespace); err != nil {
			return err
		}
	}
	if _, ok := facts.Explanation.Get(); !ok {
		return nil
	}
	placement, err := h.clusters.ClusterV1beta1().Placements(facts.Namespace).Get(ctx, facts.Name, metav1.GetOptions{})
	if facts.Placement, err = look(placement, err, "get placements in the namespace "+facts.Namespace+", which say what is wanted"); err != nil {
		return err
	}
	if facts.Sets, err = h.setsOf(ctx, facts.Cluster); err != nil {
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
	facts.Bound, err = look(bound, err, "list managedclustersetbindings in the namespace "+facts.Namespace)
	return err
}
