// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package sets

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	viewv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/view/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
)

// NewMembersCommand returns the command members.
func NewMembersCommand(opts *kit.Options) *cobra.Command {
	out := kit.NewTable()
	cmd := &cobra.Command{
		Use:               "members SET",
		Short:             "Show the members of a set and their state",
		Long:              "members shows the clusters in a set. This needs only the permission to get the set.",
		Example:           kit.Example("kubectl hub members production"),
		Args:              kit.OneArg("a cluster set"),
		ValidArgsFunction: kit.FirstArg(opts.CompletionFunc(kit.SetNames)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := out.Validate(); err != nil {
				return err
			}
			h, err := opts.Hub()
			if err != nil {
				return err
			}
			list, err := h.ListMembers(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if !out.IsTable() {
				return out.PrintObjects(opts.Out, list)
			}
			if len(list.Items) == 0 {
				_, err := fmt.Fprintf(opts.ErrOut, "The set %s has no members.\n", args[0])
				return err
			}
			return out.PrintRows(opts.Out, memberRows(list))
		},
	}
	out.AddTo(cmd)
	return cmd
}

func memberRows(list *viewv1alpha1.ClusterSetMemberList) *metav1.Table {
	rows := &metav1.Table{ColumnDefinitions: kit.Columns("Cluster", "Accepted", "Joined", "Available", "Kubernetes Version",
		"+Selected By", "+Taints")}
	for i := range list.Items {
		m := &list.Items[i]
		selector := m.Status.SelectedBy.Selector
		if selector == "" {
			selector = "<every cluster>"
		}
		rows.Rows = append(rows.Rows, metav1.TableRow{Cells: []any{
			m.Spec.Cluster, strconv.FormatBool(m.Status.Accepted), string(m.Status.Joined), string(m.Status.Available),
			kit.OrNone(m.Status.KubernetesVersion), selector, kit.OrNone(strings.Join(m.Status.Taints, ",")),
		}})
	}
	return rows
}
