// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/diagnosis"
)

func (g *global) newWhyAccessRequestCommand() *cobra.Command {
	o, in := g.newWhy(), &inNamespace{global: g}
	cmd := &cobra.Command{
		Use:   "accessrequest REQUEST",
		Short: "Say for whom an AccessRequest waits",
		Long: "why accessrequest goes along the way that an AccessRequest takes, and says for which party it waits: for the scheduler, for hub-controller-manager, for the policy or an " +
			"approver, for the cluster provider, for the cluster, or for who has made the request. This needs the permission to get accessrequests in the namespace. It says more " +
			"to users who may get the Cluster and the ClusterRequest that the request names." + whyExit,
		Example:           example("kubectl hub why accessrequest ann -n teams"),
		Args:              oneArg("an AccessRequest"),
		ValidArgsFunction: first(g.names(in.accessRequestNames)),
		RunE: func(cmd *cobra.Command, args []string) error {
			namespace, err := in.name()
			if err != nil {
				return err
			}
			h, service, err := g.serviceFacts(cmd.Context(), "")
			if err != nil {
				return err
			}
			if service.ServiceFault != "" {
				a := diagnosis.OfCluster(*service)
				return o.finish(&a)
			}
			facts := diagnosis.AccessRequestFacts{Namespace: namespace, Name: args[0], Now: time.Now()}
			if err := h.accessRequestFacts(cmd.Context(), &facts); err != nil {
				return err
			}
			a := diagnosis.OfAccessRequest(facts)
			return o.finish(&a)
		},
	}
	in.addTo(cmd, "the request")
	o.out.addTo(cmd)
	return cmd
}

// accessRequestFacts reads a request, and what it names.
func (h *hub) accessRequestFacts(ctx context.Context, facts *diagnosis.AccessRequestFacts) error {
	api := h.clusters.OpenMCPV1alpha1()
	request, err := api.AccessRequests(facts.Namespace).Get(ctx, facts.Name, metav1.GetOptions{})
	if facts.Request, err = look(request, err, "get accessrequests in the namespace "+facts.Namespace); err != nil {
		return err
	}
	if _, found := facts.Request.Get(); !found {
		return nil
	}
	switch by, is := request.Spec.RequestRef, request.Spec.ClusterRef; {
	case is != nil:
		cluster, err := api.Clusters(is.Namespace).Get(ctx, is.Name, metav1.GetOptions{})
		facts.Cluster, err = look(cluster, err, "get clusters in the namespace "+is.Namespace)
		return err
	case by != nil:
		request, err := api.ClusterRequests(by.Namespace).Get(ctx, by.Name, metav1.GetOptions{})
		facts.ClusterRequest, err = look(request, err, "get clusterrequests in the namespace "+by.Namespace)
		return err
	}
	return nil
}

// accessRequestNames completes the requests of the namespace.
func (n *inNamespace) accessRequestNames(ctx context.Context, h *hub) (names []string, err error) {
	namespace, err := n.name()
	if err != nil {
		return nil, err
	}
	list, err := h.clusters.OpenMCPV1alpha1().AccessRequests(namespace).List(ctx, metav1.ListOptions{Limit: mostCompletions})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, nil
}
