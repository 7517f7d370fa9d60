// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/answers"
	"github.com/clusterhub/clusterhub/pkg/diagnosis"
)

func newWhyAccessRequestCommand(g *global) *cobra.Command {
	o, in := newWhy(g), &inNamespace{global: g}
	cmd := &cobra.Command{
		Use:   "accessrequest REQUEST",
		Short: "Explain what an AccessRequest waits for",
		Long: "why accessrequest checks the steps of an AccessRequest, and shows which party it waits for: the scheduler, hub-controller-manager, the policy or an " +
			"approver, the cluster provider, the cluster, or the requester. This needs the permission to get accessrequests in the namespace. It shows more " +
			"to users who may get the Cluster and the ClusterRequest that the request names." + whyExit,
		Example:           example("kubectl hub why accessrequest ann -n teams"),
		Args:              oneArg("an AccessRequest"),
		ValidArgsFunction: first(g.names(func(ctx context.Context, h *hub) ([]string, error) { return accessRequestNames(ctx, in, h) })),
		RunE: func(cmd *cobra.Command, args []string) error {
			namespace, err := in.name()
			if err != nil {
				return err
			}
			return o.answer(func(h *answers.HubView) (*diagnosis.Answer, error) {
				return h.WhyAccessRequest(cmd.Context(), namespace, args[0])
			})
		},
	}
	in.addTo(cmd, "the request")
	o.out.addTo(cmd)
	return cmd
}

// accessRequestNames completes the requests of the namespace.
func accessRequestNames(ctx context.Context, n *inNamespace, h *hub) (names []string, err error) {
	namespace, err := n.name()
	if err != nil {
		return nil, err
	}
	list, err := h.clusters.OpenMCPV1alpha1().AccessRequests(namespace).List(ctx, metav1.ListOptions{Limit: maxCompletions})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, nil
}
