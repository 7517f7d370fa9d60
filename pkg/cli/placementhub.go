// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/generated/clientset/versioned/scheme"
)

// inNamespace is the flag --namespace of a command about objects in a namespace.
type inNamespace struct {
	*global
	value string
}

func (n *inNamespace) addTo(cmd *cobra.Command, of string) {
	cmd.Flags().StringVarP(&n.value, "namespace", "n", "", "Namespace of "+of+". The default is that of the context.")
}

// name is the flag, or the namespace of the context.
func (n *inNamespace) name() (string, error) {
	if n.value != "" {
		return n.value, nil
	}
	namespace, _, err := n.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", fmt.Errorf("reading the kubeconfig: %w", err)
	}
	return namespace, nil
}

// placementNames completes the placements of the namespace.
func (n *inNamespace) placementNames(ctx context.Context, h *hub) (names []string, err error) {
	namespace, err := n.name()
	if err != nil {
		return nil, err
	}
	list, err := h.clusters.ClusterV1beta1().Placements(namespace).List(ctx, metav1.ListOptions{Limit: mostCompletions})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, nil
}

// explain reads why a placement chooses what it chooses, of one cluster or of all.
func (h *hub) explain(ctx context.Context, namespace, name, cluster string) (*v1beta1.PlacementExplanation, error) {
	options := &v1beta1.PlacementExplainOptions{Cluster: cluster}
	if cluster == "" {
		options.Limit = 5000 // two of a large fleet
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
		if options.Continue = page.Status.Continue; options.Continue == "" {
			all.Status.Continue = ""
			all.TypeMeta = metav1.TypeMeta{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: "PlacementExplanation"}
			return all, nil
		}
	}
}
