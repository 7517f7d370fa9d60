// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package sets

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
)

// NewGetCommand returns the command get clustersets.
func NewGetCommand(opts *kit.Options) *cobra.Command {
	out := kit.NewTable()
	cmd := &cobra.Command{
		Use:     "clustersets",
		Aliases: []string{"clusterset"},
		Short:   "Show the cluster sets of a hub",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := out.Validate(); err != nil {
				return err
			}
			h, err := opts.Hub()
			if err != nil {
				return err
			}
			list, err := h.ListSets(cmd.Context(), metav1.ListOptions{})
			if err != nil {
				return err
			}
			for i := range list.Items {
				list.Items[i].TypeMeta = metav1.TypeMeta{APIVersion: v1beta2.SchemeGroupVersion.String(), Kind: "ManagedClusterSet"}
			}
			if !out.IsTable() {
				return out.PrintObjects(opts.Out, list)
			}
			bound, err := boundNamespaces(cmd.Context(), h)
			if err != nil {
				return err
			}
			return out.PrintRows(opts.Out, setRows(list, bound))
		},
	}
	out.AddTo(cmd)
	return cmd
}

// boundNamespaces returns the namespaces in which a set may be used, by set. It returns nil if the user may not list the bindings.
func boundNamespaces(ctx context.Context, h *kit.HubClient) (map[string][]string, error) {
	list, err := h.Clusters.ClusterV1beta2().ManagedClusterSetBindings(corev1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	bound := map[string][]string{}
	for i := range list.Items {
		set := list.Items[i].Spec.ClusterSet
		bound[set] = append(bound[set], list.Items[i].Namespace)
	}
	return bound, nil
}

func setRows(list *v1beta2.ManagedClusterSetList, bound map[string][]string) *metav1.Table {
	rows := &metav1.Table{ColumnDefinitions: kit.Columns("Name", "Bound Namespaces", "Status", "Managed Namespaces",
		"+Selector", "+Age")}
	for i := range list.Items {
		s := &list.Items[i]
		namespaces, state := kit.Unknown, kit.Unknown
		if bound != nil {
			namespaces = kit.OrNone(strings.Join(bound[s.Name], ","))
		}
		if c := meta.FindStatusCondition(s.Status.Conditions, v1beta2.ManagedClusterSetConditionEmpty); c != nil {
			state = c.Message
		}
		managed := make([]string, len(s.Spec.ManagedNamespaces))
		for i := range s.Spec.ManagedNamespaces {
			managed[i] = s.Spec.ManagedNamespaces[i].Name
		}
		rows.Rows = append(rows.Rows, metav1.TableRow{Cells: []any{
			s.Name, namespaces, state, kit.OrNone(strings.Join(managed, ",")),
			string(s.Spec.ClusterSelector.SelectorType), kit.Age(s.CreationTimestamp),
		}})
	}
	return rows
}
