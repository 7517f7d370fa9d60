// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"github.com/spf13/cobra"
)

func newWhyMemberCommand(g *global) *cobra.Command {
	o, set := newWhy(g), ""
	cmd := &cobra.Command{
		Use:     "member CLUSTER --set SET",
		Aliases: []string{"members"},
		Short:   "Explain why a cluster is in a set, or is not",
		Long: "why member compares the labels of a cluster with the selector of a set, and shows which program wrote the label that decides, and which set " +
			"claims it. Which user ran the program is in the audit log of the hub. This needs the permissions to get the cluster and the set." + whyExit,
		Example:           example("kubectl hub why member c1 --set payments"),
		Args:              oneArg("a cluster"),
		ValidArgsFunction: first(g.names(clusterNames)),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := g.hub()
			if err != nil {
				return err
			}
			a, err := h.answers().WhyMember(cmd.Context(), args[0], set)
			return o.finish(a, err)
		},
	}
	cmd.Flags().StringVar(&set, "set", "", "The set. Required.")
	must(cmd.MarkFlagRequired("set"))
	must(cmd.RegisterFlagCompletionFunc("set", g.names(setNames)))
	o.out.addTo(cmd)
	return cmd
}
