// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"github.com/spf13/cobra"

	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/inspect/answers"
	"github.com/clusterhub/clusterhub/pkg/inspect/diagnosis"
)

func newWhyClusterCommand(opts *kit.Options) *cobra.Command {
	o := newWhy(opts)
	cmd := &cobra.Command{
		Use:   "cluster CLUSTER",
		Short: "Explain why a cluster does not work with the hub",
		Long: "why cluster checks the steps by which a cluster joins a hub, and shows the one that fails: whether it exists and is accepted, whether its agent has " +
			"its identity and renews its lease, and what it reports about its cluster. This needs the permission to get the cluster. It shows more to users who may get " +
			"leases in the namespace of the cluster, and list certificatesigningrequests." + whyExit,
		Example:           kit.Example("kubectl hub why cluster c1\nkubectl hub why cluster c1 -o json"),
		Args:              kit.OneArg("a cluster"),
		ValidArgsFunction: kit.FirstArg(opts.CompletionFunc(kit.ClusterNames)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.answer(func(h *answers.HubView) (*diagnosis.Answer, error) { return h.WhyCluster(cmd.Context(), args[0]) })
		},
	}
	o.out.AddTo(cmd)
	return cmd
}
