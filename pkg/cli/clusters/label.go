// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
)

// NewLabelCommand returns the command label.
func NewLabelCommand(opts *kit.Options) *cobra.Command {
	out, overwrite := kit.NewFormat("text", "json"), false
	cmd := &cobra.Command{
		Use:   "label CLUSTER KEY=VALUE... KEY-...",
		Short: "Set or remove labels of a cluster, and thereby change its sets",
		Long: "label sets and removes labels of a cluster. A label under cluster.open-cluster-management.io/ or " +
			"info.open-cluster-management.io/ needs the permission to create managedclusters/label with the name KEY:VALUE.",
		Example: kit.Example(`
kubectl hub label c1 env=production region-
kubectl hub label c1 cluster.open-cluster-management.io/clusterset=payments --overwrite`),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return fmt.Errorf("%s takes the name of a cluster, and labels as KEY=VALUE or KEY- (see %[1]s --help)", cmd.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: kit.FirstArg(opts.CompletionFunc(kit.ClusterNames)),
		RunE: func(cmd *cobra.Command, args []string) error {
			changes, err := parseLabels(args[1:])
			if err != nil {
				return err
			}
			h, err := opts.Hub()
			if err != nil {
				return err
			}
			cluster, err := labelCluster(cmd.Context(), h, args[0], changes, overwrite)
			if err != nil {
				return err
			}
			result := struct {
				Name   string            `json:"name"`
				Labels map[string]string `json:"labels"`
			}{cluster.Name, cluster.Labels}
			return out.Print(opts.Out, result, "%s\n", kit.Outcome("managedcluster", cluster.Name, "labeled"))
		},
	}
	cmd.Flags().BoolVar(&overwrite, "overwrite", false, "Change labels that already have another value.")
	out.AddTo(cmd)
	return cmd
}

// parseLabels parses KEY=VALUE, and KEY-, for which it returns nil: the label is removed.
func parseLabels(args []string) (map[string]*string, error) {
	changes := map[string]*string{}
	for _, arg := range args {
		key, value, set := strings.Cut(arg, "=")
		removed := false
		if !set {
			key, removed = strings.CutSuffix(arg, "-")
		}
		if !set && !removed {
			return nil, fmt.Errorf("%q is neither KEY=VALUE nor KEY-", arg)
		}
		if why := validation.IsQualifiedName(key); len(why) > 0 {
			return nil, fmt.Errorf("%q cannot be the key of a label: %s", key, strings.Join(why, "; "))
		}
		if why := validation.IsValidLabelValue(value); len(why) > 0 {
			return nil, fmt.Errorf("%q cannot be the value of a label: %s", value, strings.Join(why, "; "))
		}
		if _, again := changes[key]; again {
			return nil, fmt.Errorf("the label %s is set twice", key)
		}
		changes[key] = nil
		if set {
			changes[key] = &value
		}
	}
	return changes, nil
}

func labelCluster(ctx context.Context, h *kit.HubClient, name string, changes map[string]*string, overwrite bool) (*clusterv1.ManagedCluster, error) {
	return kit.Reach(h, func(c kit.ManagedClusters) (*clusterv1.ManagedCluster, error) {
		metadata := map[string]any{"labels": changes}
		if !overwrite {
			cluster, err := c.Get(ctx, name)
			if err != nil {
				return nil, err
			}
			for _, key := range slices.Sorted(maps.Keys(changes)) {
				if now, ok := cluster.Labels[key]; ok && changes[key] != nil && now != *changes[key] {
					return nil, fmt.Errorf("cluster %s already has the label %s=%s: use --overwrite to change it", name, key, now)
				}
			}
			metadata["resourceVersion"] = cluster.ResourceVersion
		}
		patch, err := json.Marshal(map[string]any{"metadata": metadata})
		if err != nil {
			return nil, err
		}
		return c.Label(ctx, name, patch)
	})
}
