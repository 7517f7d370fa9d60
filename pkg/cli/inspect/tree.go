// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/inspect/tree"
)

type treeOptions struct {
	*kit.Options
	out *kit.Format
	all bool
}

// NewTreeCommand returns the command tree.
func NewTreeCommand(opts *kit.Options) *cobra.Command {
	return kit.NewGroup("tree", "Show the objects of a set, a cluster or a placement, and expand those that are not healthy",
		newTreeSetCommand(opts), newTreeClusterCommand(opts), newTreePlacementCommand(opts))
}

// treeRights is a part of the help of each command.
const treeRights = "Objects that you may not see are listed below the tree, and are no error. Healthy objects are collapsed and grouped; --all expands " +
	"everything. -o json and -o yaml print everything, too."

func (o *treeOptions) addTo(cmd *cobra.Command) {
	o.out = kit.NewFormat("text", "json", "yaml")
	o.out.AddTo(cmd)
	cmd.Flags().BoolVar(&o.all, "all", false, "Expand healthy objects, too, and group nothing.")
}

func newTreeSetCommand(opts *kit.Options) *cobra.Command {
	o := &treeOptions{Options: opts}
	cmd := &cobra.Command{
		Use:     "set SET",
		Aliases: []string{"clusterset"},
		Short:   "Show the clusters of a set, their works, and the manifests that fail",
		Long: "tree set shows the clusters of a set, the works on each, and the manifests of these. It needs the permission to get the " +
			"set: that shows its members. " + treeRights,
		Example:           kit.Example("kubectl hub tree set production"),
		Args:              kit.OneArg("a cluster set"),
		ValidArgsFunction: kit.FirstArg(opts.CompletionFunc(kit.SetNames)),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), o.readSet(args[0])) },
	}
	o.addTo(cmd)
	return cmd
}

func newTreeClusterCommand(opts *kit.Options) *cobra.Command {
	o := &treeOptions{Options: opts}
	cmd := &cobra.Command{
		Use:   "cluster CLUSTER",
		Short: "Show the conditions of a cluster, its sets, access requests, namespaces and works",
		Long: "tree cluster shows the conditions of a cluster, when its agent last renewed its lease, the sets that it is in, its namespace on " +
			"the hub with its access requests, the namespaces that its sets request, and its works. It needs the permission to get " +
			"the cluster or one of its sets. " + treeRights,
		Example:           kit.Example("kubectl hub tree cluster paris-1"),
		Args:              kit.OneArg("a cluster"),
		ValidArgsFunction: kit.FirstArg(opts.CompletionFunc(kit.ClusterNames)),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), o.readCluster(args[0])) },
	}
	o.addTo(cmd)
	return cmd
}

func newTreePlacementCommand(opts *kit.Options) *cobra.Command {
	o, in := &treeOptions{Options: opts}, &kit.NamespaceFlag{Options: opts}
	cmd := &cobra.Command{
		Use:   "placement PLACEMENT",
		Short: "Show the clusters that a placement has chosen, and their works",
		Long: "tree placement shows the replica sets that use a placement, the clusters that it has chosen, and the works of the replica " +
			"sets on each of them. It needs the permission to get the placement. " + treeRights,
		Example:           kit.Example("kubectl hub tree placement web -n dev"),
		Args:              kit.OneArg("a placement"),
		ValidArgsFunction: kit.FirstArg(opts.CompletionFunc(in.PlacementNames)),
		RunE: func(cmd *cobra.Command, args []string) error {
			namespace, err := in.Name()
			if err != nil {
				return err
			}
			return o.run(cmd.Context(), o.readPlacement(namespace, args[0]))
		},
	}
	in.AddTo(cmd, "the placement")
	o.addTo(cmd)
	return cmd
}

func (o *treeOptions) run(ctx context.Context, read func(context.Context, *treeReader) (*tree.Node, error)) error {
	h, err := o.Hub()
	if err != nil {
		return err
	}
	whole := o.all || o.out.Value != "text"
	root, err := read(ctx, &treeReader{HubClient: h, whole: whole, now: time.Now()})
	if err != nil {
		return err
	}
	if o.out.Value != "text" {
		return o.out.Document(o.Out, root)
	}
	if !whole {
		root = tree.Fold(root)
	}
	rows, unseen := root.Rows(time.Now())
	if err := kit.NewTable().PrintRows(o.Out, treeRows(rows)); err != nil {
		return err
	}
	l := &kit.Lines{Out: o.Out}
	for _, text := range slices.Compact(unseen) {
		l.Printf("Not seen: %s", text)
	}
	return l.Err
}

func treeRows(rows []tree.Row) *metav1.Table {
	table := &metav1.Table{ColumnDefinitions: kit.Columns("Name", "State", "Since", "Reason", "Message")}
	for _, r := range rows {
		cells := []any{r.Name, string(r.State), r.Since, r.Reason, r.Message}
		for i, cell := range cells {
			// Escape control characters of what a server returned.
			cells[i] = command.Printable(fmt.Sprint(cell))
			if cell == "" {
				cells[i] = "-"
			}
		}
		cells[4] = short(fmt.Sprint(cells[4]))
		table.Rows = append(table.Rows, metav1.TableRow{Cells: cells})
	}
	return table
}

// short cuts a message so that it fits a line. -o yaml prints all of it.
func short(message string) string {
	const most = 160
	if runes := []rune(message); len(runes) > most {
		return string(runes[:most]) + " …"
	}
	return message
}
