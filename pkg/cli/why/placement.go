// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"github.com/spf13/cobra"

	"github.com/clusterhub/clusterhub/pkg/cli/kit"
)

func newWhyPlacementCommand(opts *kit.Options) *cobra.Command {
	o, in, cluster := newWhy(opts), &kit.NamespaceFlag{Options: opts}, ""
	cmd := &cobra.Command{
		Use:   "placement PLACEMENT --cluster CLUSTER",
		Short: "Explain why a placement chooses a cluster, or does not",
		Long: "why placement shows the step at which a placement excludes a cluster, and what would change that. The hub computes the steps as its scheduler does; kubectl hub " +
			"explain placement shows them for all clusters. This needs the permission to get placements/explain in the namespace." + whyExit,
		Example:           kit.Example("kubectl hub why placement web -n dev --cluster berlin-1"),
		Args:              kit.OneArg("a placement"),
		ValidArgsFunction: kit.FirstArg(opts.CompletionFunc(in.PlacementNames)),
		RunE: func(cmd *cobra.Command, args []string) error {
			namespace, err := in.Name()
			if err != nil {
				return err
			}
			h, err := opts.Hub()
			if err != nil {
				return err
			}
			a, err := h.Answers().WhyPlacement(cmd.Context(), namespace, args[0], cluster)
			return o.finish(a, err)
		},
	}
	in.AddTo(cmd, "the placement")
	cmd.Flags().StringVar(&cluster, "cluster", "", "The cluster. Required.")
	kit.Must(cmd.MarkFlagRequired("cluster"))
	kit.Must(cmd.RegisterFlagCompletionFunc("cluster", opts.CompletionFunc(kit.ClusterNames)))
	o.out.AddTo(cmd)
	return cmd
}
