// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/diagnosis"
)

// accessRequestFacts reads a request and the objects that it refers to.
func (h *HubView) accessRequestFacts(ctx context.Context, facts *diagnosis.AccessRequestFacts) error {
	api := h.clusters.OpenMCPV1alpha1()
	request, err := api.AccessRequests(facts.Namespace).Get(ctx, facts.Name, metav1.GetOptions{})
	facts.Request, err = asRead(request, err, "get accessrequests in the namespace "+facts.Namespace)
	if err != nil {
		return err
	}
	if _, found := facts.Request.Get(); !found {
		return nil
	}
	switch by, is := request.Spec.RequestRef, request.Spec.ClusterRef; {
	case is != nil:
		cluster, err := api.Clusters(is.Namespace).Get(ctx, is.Name, metav1.GetOptions{})
		facts.Cluster, err = asRead(cluster, err, "get clusters in the namespace "+is.Namespace)
		return err
	case by != nil:
		request, err := api.ClusterRequests(by.Namespace).Get(ctx, by.Name, metav1.GetOptions{})
		facts.ClusterRequest, err = asRead(request, err, "get clusterrequests in the namespace "+by.Namespace)
		return err
	}
	return nil
}
