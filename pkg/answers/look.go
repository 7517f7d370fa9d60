// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	viewv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/view/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/command/paging"
	"github.com/clusterhub/clusterhub/pkg/diagnosis"
	"github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned/scheme"
)

// asRead converts the response of a server to a Read. It returns an error unless it means that the object does not exist or that the user may not see
// it.
func asRead[T any](value T, err error, what string) (diagnosis.Read[T], error) {
	switch {
	case err == nil:
		return diagnosis.Found(value), nil
	case apierrors.IsForbidden(err):
		return diagnosis.Hidden[T]("you may not " + what), nil
	case apierrors.IsNotFound(err):
		return diagnosis.Missing[T](), nil
	}
	return diagnosis.Read[T]{}, err
}

// setsOf returns the sets of a cluster that the user may see.
func (h *HubView) setsOf(ctx context.Context, cluster string) (diagnosis.Read[[]string], error) {
	sets, options := []string{}, metav1.ListOptions{FieldSelector: "spec.cluster=" + cluster}
	err := paging.EachItem(ctx, h.clusters.ViewV1alpha1().ClusterSetMembers().List, options, func(m *viewv1alpha1.ClusterSetMember) error {
		sets = append(sets, m.Spec.ClusterSet)
		return nil
	})
	slices.Sort(sets)
	return asRead(sets, err, "list clustersetmembers, which show the sets of the cluster")
}

// Explain returns the explanation of a placement, for one cluster or for all.
func (h *HubView) Explain(ctx context.Context, namespace, name, cluster string) (*v1beta1.PlacementExplanation, error) {
	options := &v1beta1.PlacementExplainOptions{Cluster: cluster}
	if cluster == "" {
		options.Limit = 5000 // two pages for a large fleet
	}
	var all *v1beta1.PlacementExplanation
	for {
		page := &v1beta1.PlacementExplanation{}
		err := h.clusters.ClusterV1beta1().RESTClient().Get().Namespace(namespace).Resource("placements").Name(name).SubResource("explain").
			VersionedParams(options, scheme.ParameterCodec).Do(ctx).Into(page)
		if err != nil {
			return nil, err
		}
		if all == nil {
			all = page
		} else {
			all.Status.Clusters = append(all.Status.Clusters, page.Status.Clusters...)
		}
		options.Continue = page.Status.Continue
		if options.Continue == "" {
			all.Status.Continue = ""
			all.TypeMeta = metav1.TypeMeta{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: "PlacementExplanation"}
			return all, nil
		}
	}
}

// IsMissing reports whether an object of the resource does not exist. It returns false if the server does not serve the resource.
func IsMissing(err error, resource string) bool {
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) && status.Status().Details != nil &&
		status.Status().Details.Kind == resource && status.Status().Details.Name != ""
}
