// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
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
	// maxCompletions is the largest number of completions. It is more than a user reads.
	maxCompletions = 500
)

type completion = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

func (g *global) completeContexts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	config, err := g.flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return slices.Sorted(maps.Keys(config.Contexts)), cobra.ShellCompDirectiveNoFileComp
}

// names completes names that the hub lists. If the argument is a comma-separated list, it completes the last element.
func (g *global) names(list func(context.Context, *hub) ([]string, error)) completion {
	return func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		h, err := g.hub()
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

func clusterNames(ctx context.Context, h *hub) (names []string, err error) {
	list, err := reach(h, func(c clusters) (*clusterv1.ManagedClusterList, error) {
		return c.List(ctx, metav1.ListOptions{Limit: maxCompletions})
	})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, nil
}

func setNames(ctx context.Context, h *hub) (names []string, err error) {
	list, err := h.listSets(ctx, metav1.ListOptions{Limit: maxCompletions})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, nil
}

// first completes the first argument only.
func first(complete completion) completion {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, typed)
	}
}
