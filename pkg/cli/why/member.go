// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"github.com/spf13/cobra"

	"github.com/clusterhub/clusterhub/pkg/cli/kit"
)

func newWhyMemberCommand(opts *kit.Options) *cobra.Command {
	o, set := newWhy(opts), ""
	cmd := &cobra.Command{
		Use:     "member CLUSTER --set SET",
		Aliases: []string{"members"},
		Short:   "Explain why a cluster is in a set, or is not",
		Long: "why member compares the labels of a cluster with the selector of a set, and shows which program wrote the label that decides, and which set " +
			"claims it. Which user ran the program is in the audit log of the hub. This needs the permissions to get the cluster and the set." + whyExit,
		Example:           kit.Example("kubectl hub why member c1 --set payments"),
		Args:              kit.OneArg("a cluster"),
		ValidArgsFunction: kit.FirstArg(opts.CompletionFunc(kit.ClusterNames)),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := opts.Hub()
			if err != nil {
				return err
			}
			a, err := h.Answers().WhyMember(cmd.Context(), args[0], set)
			return o.finish(a, err)
		},
	}
	cmd.Flags().StringVar(&set, "set", "", "The set. Required.")
	kit.Must(cmd.MarkFlagRequired("set"))
	kit.Must(cmd.RegisterFlagCompletionFunc("set", opts.CompletionFunc(kit.SetNames)))
	o.out.AddTo(cmd)
	return cmd
}
