// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// inNamespace is the flag --namespace of a command about objects in a namespace.
type inNamespace struct {
	*global
	value string
}

func (n *inNamespace) addTo(cmd *cobra.Command, of string) {
	cmd.Flags().StringVarP(&n.value, "namespace", "n", "", "Namespace of "+of+". Defaults to the namespace of the context.")
}

// name returns the value of the flag, or the namespace of the context.
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
	list, err := h.clusters.ClusterV1beta1().Placements(namespace).List(ctx, metav1.ListOptions{Limit: maxCompletions})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, nil
}
