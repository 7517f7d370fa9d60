// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/cli/kit"
)

// policyNames returns the policies of the namespace of the check.
func (o *deployCheckOptions) policyNames(ctx context.Context, h *kit.HubClient) (names []string, err error) {
	namespace, err := o.in.Name()
	if err != nil {
		return nil, err
	}
	list, err := h.Clusters.EdgeV1alpha1().DeploymentPolicies(namespace).List(ctx, metav1.ListOptions{Limit: kit.MaxCompletions})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, nil
}

// patternNames returns the patterns of the namespace of the check.
func (o *deployCheckOptions) patternNames(ctx context.Context, h *kit.HubClient) (names []string, err error) {
	namespace, err := o.in.Name()
	if err != nil {
		return nil, err
	}
	list, err := h.Clusters.EdgeV1alpha1().DeploymentPatterns(namespace).List(ctx, metav1.ListOptions{Limit: kit.MaxCompletions})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, nil
}

// nodeNames returns the edge nodes of the hub.
func nodeNames(ctx context.Context, h *kit.HubClient) (names []string, err error) {
	list, err := h.Clusters.EdgeV1alpha1().EdgeNodes().List(ctx, metav1.ListOptions{Limit: kit.MaxCompletions})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, nil
}
