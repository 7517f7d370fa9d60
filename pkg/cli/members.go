// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	viewv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/view/v1alpha1"
)

func newMembersCommand(g *global) *cobra.Command {
	out := newTable()
	cmd := &cobra.Command{
		Use:               "members SET",
		Short:             "Show the members of a set and their state",
		Long:              "members shows the clusters in a set. This needs only the permission to get the set.",
		Example:           example("kubectl hub members production"),
		Args:              oneArg("a cluster set"),
		ValidArgsFunction: first(g.names(setNames)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := out.validate(); err != nil {
				return err
			}
			h, err := g.hub()
			if err != nil {
				return err
			}
			list, err := h.membersOf(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if !out.isTable() {
				return out.printObjects(g.Out, list)
			}
			if len(list.Items) == 0 {
				_, err := fmt.Fprintf(g.ErrOut, "The set %s has no members.\n", args[0])
				return err
			}
			return out.printRows(g.Out, memberRows(list))
		},
	}
	out.addTo(cmd)
	return cmd
}

func memberRows(list *viewv1alpha1.ClusterSetMemberList) *metav1.Table {
	rows := &metav1.Table{ColumnDefinitions: columns("Cluster", "Accepted", "Joined", "Available", "Kubernetes Version",
		"+Selected By", "+Taints")}
	for i := range list.Items {
		m := &list.Items[i]
		selector := m.Status.SelectedBy.Selector
		if selector == "" {
			selector = "<every cluster>"
		}
		rows.Rows = append(rows.Rows, metav1.TableRow{Cells: []any{
			m.Spec.Cluster, strconv.FormatBool(m.Status.Accepted), string(m.Status.Joined), string(m.Status.Available),
			orNone(m.Status.KubernetesVersion), selector, orNone(strings.Join(m.Status.Taints, ",")),
		}})
	}
	return rows
}

// oneArg returns a check for exactly one argument. The error names what is missing.
func oneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("%s takes the name of %s, not %d arguments (see %[1]s --help)", cmd.CommandPath(), what, len(args))
		}
		if args[0] == "" { // a variable of a script that is not set
			return fmt.Errorf("%s takes the name of %s, not an empty argument (see %[1]s --help)", cmd.CommandPath(), what)
		}
		return nil
	}
}
