// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/inspect/answers"
	"github.com/clusterhub/clusterhub/pkg/inspect/diagnosis"
)

type whyWorkOptions struct {
	*whyOptions
	cluster, namespace string
}

func newWhyWorkCommand(opts *kit.Options) *cobra.Command {
	o := &whyWorkOptions{whyOptions: newWhy(opts)}
	cmd := &cobra.Command{
		Use:   "work WORK --cluster CLUSTER",
		Short: "Explain why a work is not complete on a cluster",
		Long: "why work shows which manifest of a work is not applied or not available, and why; or that the agent has not processed the work; or that the cluster itself is the " +
			"cause. Without --cluster, it checks the only cluster that has a work of this name. This needs the permission to get manifestworks in the namespace of the cluster." + whyExit,
		Example:           kit.Example("kubectl hub why work web --cluster c1"),
		Args:              kit.OneArg("a work"),
		ValidArgsFunction: kit.FirstArg(opts.CompletionFunc(kit.WorkNames)),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	cmd.Flags().StringVar(&o.cluster, "cluster", "", "The cluster.")
	cmd.Flags().StringVarP(&o.namespace, "namespace", "n", "", "Same as --cluster.")
	cmd.MarkFlagsMutuallyExclusive("cluster", "namespace")
	kit.Must(cmd.RegisterFlagCompletionFunc("cluster", opts.CompletionFunc(kit.ClusterNames)))
	o.out.AddTo(cmd)
	return cmd
}

func (o *whyWorkOptions) run(ctx context.Context, name string) error {
	return o.answer(func(h *answers.HubView) (*diagnosis.Answer, error) {
		return h.WhyWork(ctx, o.cluster+o.namespace, name, func() (string, error) {
			h, err := o.Hub()
			if err != nil {
				return "", err
			}
			return clusterOfWork(ctx, h, name)
		})
	})
}

// clusterOfWork returns the only cluster that has a work of that name.
func clusterOfWork(ctx context.Context, h *kit.HubClient, name string) (string, error) {
	works, err := h.ListWorks(ctx, nil, name)
	if err != nil {
		return "", err
	}
	switch len(works) {
	case 0:
		return "", kit.NoWorkError(name)
	case 1:
		return works[0].Namespace, nil
	}
	clusters := make([]string, len(works))
	for i := range works {
		clusters[i] = works[i].Namespace
	}
	return "", fmt.Errorf("%d clusters have a work %s: choose one by --cluster: %s", len(works), name, kit.SomeNames(clusters))
}
