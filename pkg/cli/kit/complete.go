// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
)

const (
	// completeFor is the time limit of a completion.
	completeFor = 3 * time.Second
	// MaxCompletions is the largest number of completions. It is more than a user reads.
	MaxCompletions = 500
)

// Completion completes an argument or the value of a flag, as cobra calls it.
type Completion = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

func (o *Options) completeContexts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	config, err := o.ConfigFlags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return slices.Sorted(maps.Keys(config.Contexts)), cobra.ShellCompDirectiveNoFileComp
}

// CompletionFunc completes names that the hub lists. If the argument is a comma-separated list, it completes the last element.
func (o *Options) CompletionFunc(list func(context.Context, *HubClient) ([]string, error)) Completion {
	return func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		h, err := o.Hub()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completeFor)
		defer cancel()
		found, err := list(ctx, h)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		before := typed[:strings.LastIndex(typed, ",")+1]
		for i := range found {
			found[i] = before + found[i]
		}
		found = slices.DeleteFunc(found, func(name string) bool { return !strings.HasPrefix(name, typed) })
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// ClusterNames completes the names of clusters.
func ClusterNames(ctx context.Context, h *HubClient) (names []string, err error) {
	list, err := Reach(h, func(c ManagedClusters) (*clusterv1.ManagedClusterList, error) {
		return c.List(ctx, metav1.ListOptions{Limit: MaxCompletions})
	})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, nil
}

// SetNames completes the names of sets.
func SetNames(ctx context.Context, h *HubClient) (names []string, err error) {
	list, err := h.ListSets(ctx, metav1.ListOptions{Limit: MaxCompletions})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, nil
}

// FirstArg completes the first argument only.
func FirstArg(complete Completion) Completion {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, typed)
	}
}

// NamespaceFlag is the flag --namespace of a command about objects in a namespace.
type NamespaceFlag struct {
	*Options
	Value string
}

// AddTo adds the flag. The help says that it is the namespace of the given object.
func (n *NamespaceFlag) AddTo(cmd *cobra.Command, of string) {
	cmd.Flags().StringVarP(&n.Value, "namespace", "n", "", "Namespace of "+of+". Defaults to the namespace of the context.")
}

// Name returns the value of the flag, or the namespace of the context.
func (n *NamespaceFlag) Name() (string, error) {
	if n.Value != "" {
		return n.Value, nil
	}
	namespace, _, err := n.ConfigFlags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", fmt.Errorf("reading the kubeconfig: %w", err)
	}
	return namespace, nil
}

// PlacementNames completes the placements of the namespace.
func (n *NamespaceFlag) PlacementNames(ctx context.Context, h *HubClient) (names []string, err error) {
	namespace, err := n.Name()
	if err != nil {
		return nil, err
	}
	list, err := h.Clusters.ClusterV1beta1().Placements(namespace).List(ctx, metav1.ListOptions{Limit: MaxCompletions})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, nil
}
