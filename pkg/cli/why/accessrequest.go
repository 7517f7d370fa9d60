// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/inspect/answers"
	"github.com/clusterhub/clusterhub/pkg/inspect/diagnosis"
)

func newWhyAccessRequestCommand(opts *kit.Options) *cobra.Command {
	o, in := newWhy(opts), &kit.NamespaceFlag{Options: opts}
	cmd := &cobra.Command{
		Use:   "accessrequest REQUEST",
		Short: "Explain what an AccessRequest waits for",
		Long: "why accessrequest checks the steps of an AccessRequest, and shows which party it waits for: the scheduler, hub-controller-manager, the policy or an " +
			"approver, the cluster provider, the cluster, or the requester. This needs the permission to get accessrequests in the namespace. It shows more " +
			"to users who may get the Cluster and the ClusterRequest that the request names." + whyExit,
		Example:           kit.Example("kubectl hub why accessrequest ann -n teams"),
		Args:              kit.OneArg("an AccessRequest"),
		ValidArgsFunction: kit.FirstArg(opts.CompletionFunc(func(ctx context.Context, h *kit.HubClient) ([]string, error) { return accessRequestNames(ctx, in, h) })),
		RunE: func(cmd *cobra.Command, args []string) error {
			namespace, err := in.Name()
			if err != nil {
				return err
			}
			return o.answer(func(h *answers.HubView) (*diagnosis.Answer, error) {
				return h.WhyAccessRequest(cmd.Context(), namespace, args[0])
			})
		},
	}
	in.AddTo(cmd, "the request")
	o.out.AddTo(cmd)
	return cmd
}

// accessRequestNames completes the requests of the namespace.
func accessRequestNames(ctx context.Context, n *kit.NamespaceFlag, h *kit.HubClient) (names []string, err error) {
	namespace, err := n.Name()
	if err != nil {
		return nil, err
	}
	list, err := h.Clusters.OpenMCPV1alpha1().AccessRequests(namespace).List(ctx, metav1.ListOptions{Limit: kit.MaxCompletions})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, nil
}
