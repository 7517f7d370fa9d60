// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	viewv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/view/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// NewGetCommand returns the command get clusters.
func NewGetCommand(opts *kit.Options) *cobra.Command {
	set, out := "", kit.NewTable()
	cmd := &cobra.Command{
		Use:     "clusters",
		Aliases: []string{"cluster"},
		Short:   "Show the clusters of a hub",
		Example: kit.Example("kubectl hub get clusters\nkubectl hub get clusters --clusterset production -o wide"),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := out.Validate(); err != nil {
				return err
			}
			h, err := opts.Hub()
			if err != nil {
				return err
			}
			list, err := listClustersOf(cmd.Context(), h, set)
			if err != nil {
				return err
			}
			if !out.IsTable() {
				return out.PrintObjects(opts.Out, list)
			}
			if len(list.Items) == 0 {
				_, err := fmt.Fprintln(opts.ErrOut, "No clusters found.")
				return err
			}
			return out.PrintRows(opts.Out, clusterRows(list))
		},
	}
	cmd.Flags().StringVar(&set, "clusterset", "", "Show only the members of this set, with any type of selector.")
	kit.Must(cmd.RegisterFlagCompletionFunc("clusterset", opts.CompletionFunc(kit.SetNames)))
	out.AddTo(cmd)
	return cmd
}

// listClustersOf returns the clusters of a set, or all clusters. The hub determines the members: sets select in several ways.
func listClustersOf(ctx context.Context, h *kit.HubClient, set string) (*clusterv1.ManagedClusterList, error) {
	options := metav1.ListOptions{}
	var members *viewv1alpha1.ClusterSetMemberList
	if set != "" {
		var err error
		members, err = h.ListMembers(ctx, set)
		if err != nil {
			return nil, err
		}
		if len(members.Items) == 0 {
			return &clusterv1.ManagedClusterList{Items: []clusterv1.ManagedCluster{}}, nil
		}
		options.LabelSelector = members.Items[0].Status.SelectedBy.Selector
	}
	list, err := h.ListClusters(ctx, options)
	if apierrors.IsForbidden(err) && set != "" {
		return nil, fmt.Errorf("%w (kubectl hub members %s shows those that you can see)", err, set)
	}
	if err != nil {
		return nil, err
	}
	if set != "" {
		isMember := map[string]bool{}
		for i := range members.Items {
			isMember[members.Items[i].Spec.Cluster] = true
		}
		list.Items = slices.DeleteFunc(list.Items, func(c clusterv1.ManagedCluster) bool { return !isMember[c.Name] })
	}
	for i := range list.Items {
		list.Items[i].TypeMeta = metav1.TypeMeta{APIVersion: clusterv1.SchemeGroupVersion.String(), Kind: "ManagedCluster"}
	}
	return list, nil
}

func clusterRows(list *clusterv1.ManagedClusterList) *metav1.Table {
	rows := &metav1.Table{ColumnDefinitions: kit.Columns("Name", "Accepted", "Available", "ClusterSet", "CPU", "Memory",
		"Kubernetes Version", "+Joined", "+Registration", "+Age")}
	for i := range list.Items {
		c := &list.Items[i]
		rows.Rows = append(rows.Rows, metav1.TableRow{Cells: []any{
			c.Name, strconv.FormatBool(c.Spec.HubAcceptsClient), kit.ConditionStatus(c, registration.ConditionAvailable),
			kit.OrNone(c.Labels[cluster.ClusterSetLabel]), quantity(c, "cpu"), quantity(c, "memory"),
			kit.OrNone(c.Status.Version.Kubernetes),
			kit.ConditionStatus(c, registration.ConditionJoined), kit.RegistrationOf(c), kit.Age(c.CreationTimestamp),
		}})
	}
	return rows
}

func quantity(c *clusterv1.ManagedCluster, name clusterv1.ResourceName) string {
	if q, ok := c.Status.Capacity[name]; ok {
		return q.String()
	}
	return "<none>"
}
