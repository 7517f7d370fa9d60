// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"github.com/spf13/cobra"
)

func newWhyPlacementCommand(g *global) *cobra.Command {
	o, in, cluster := newWhy(g), &inNamespace{global: g}, ""
	cmd := &cobra.Command{
		Use:   "placement PLACEMENT --cluster CLUSTER",
		Short: "Explain why a placement chooses a cluster, or does not",
		Long: "why placement shows the step at which a placement excludes a cluster, and what would change that. The hub computes the steps as its scheduler does; kubectl hub " +
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
			a, err := h.answers().WhyPlacement(cmd.Context(), namespace, args[0], cluster)
			return o.finish(a, err)
		},
	}
	in.addTo(cmd, "the placement")
	cmd.Flags().StringVar(&cluster, "cluster", "", "The cluster. Required.")
	must(cmd.MarkFlagRequired("cluster"))
	must(cmd.RegisterFlagCompletionFunc("cluster", g.names(clusterNames)))
	o.out.addTo(cmd)
	return cmd
}
