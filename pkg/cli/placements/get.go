// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placements

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/command/paging"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

type getPlacementsOptions struct {
	kit.NamespaceFlag
	all bool
	out *kit.Table
}

// NewGetCommand returns the command get placements.
func NewGetCommand(opts *kit.Options) *cobra.Command {
	o := &getPlacementsOptions{NamespaceFlag: kit.NamespaceFlag{Options: opts}, out: kit.NewTable()}
	cmd := &cobra.Command{
		Use:     "placements [PLACEMENT]",
		Aliases: []string{"placement"},
		Short:   "Show the placements of a namespace, and the clusters that they choose",
		Long: "get placements shows placements. -o wide prints a line for each chosen cluster. This needs the permissions to get and " +
			"list placements and placementdecisions in the namespace.",
		Example: kit.Example(`
kubectl hub get placements -n dev
kubectl hub get placements web -n dev -o wide`),
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: kit.FirstArg(opts.CompletionFunc(o.PlacementNames)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.out.Validate(); err != nil {
				return err
			}
			return o.run(cmd.Context(), args)
		},
	}
	o.AddTo(cmd, "the placements")
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "Show the placements of all namespaces.")
	cmd.MarkFlagsMutuallyExclusive("namespace", "all-namespaces")
	o.out.AddTo(cmd)
	return cmd
}

func (o *getPlacementsOptions) run(ctx context.Context, args []string) error {
	namespace, err := o.Name()
	if o.all {
		namespace, err = metav1.NamespaceAll, nil
	}
	if err != nil {
		return err
	}
	h, err := o.Hub()
	if err != nil {
		return err
	}
	list := &v1beta1.PlacementList{Items: []v1beta1.Placement{}}
	switch {
	case len(args) == 1 && o.all:
		return fmt.Errorf("a placement is namespaced: use %s --namespace instead of --all-namespaces", args[0])
	case len(args) == 1:
		one, err := h.Clusters.ClusterV1beta1().Placements(namespace).Get(ctx, args[0], metav1.GetOptions{})
		if err != nil {
			return err
		}
		list.Items = append(list.Items, *one)
	default:
		all, err := paging.List(ctx, h.Clusters.ClusterV1beta1().Placements(namespace).List, metav1.ListOptions{})
		if err != nil {
			return err
		}
		list.Items = all.Items
	}
	for i := range list.Items {
		list.Items[i].TypeMeta = metav1.TypeMeta{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: "Placement"}
	}
	if !o.out.IsTable() {
		return o.out.PrintObjects(o.Out, list)
	}
	if len(list.Items) == 0 {
		_, err := fmt.Fprintln(o.ErrOut, "No placements found.")
		return err
	}
	decided, err := h.ListDecisions(ctx, namespace, args)
	if err != nil {
		return err
	}
	if o.out.Format() != "wide" {
		return o.out.PrintRows(o.Out, placementRows(list, decided, o.all))
	}
	return o.out.PrintRows(o.Out, decisionRows(list, decided, availabilityOf(ctx, h), o.all))
}

// availabilityOf returns which clusters are available, as far as the user may see them.
func availabilityOf(ctx context.Context, h *kit.HubClient) map[string]string {
	available := map[string]string{}
	list, err := h.ListClusters(ctx, metav1.ListOptions{})
	if err != nil {
		return available
	}
	for i := range list.Items {
		available[list.Items[i].Name] = kit.ConditionStatus(&list.Items[i], registration.ConditionAvailable)
	}
	return available
}

// placed returns the first cells of a row, like clusteradm.
func placed(p *v1beta1.Placement, all bool) []any {
	state, reason := kit.Unknown, "<none>"
	if c := meta.FindStatusCondition(p.Status.Conditions, v1beta1.PlacementConditionSatisfied); c != nil {
		state, reason = string(c.Status), c.Reason
	}
	if c := meta.FindStatusCondition(p.Status.Conditions, v1beta1.PlacementConditionMisconfigured); c != nil && c.Status == metav1.ConditionTrue {
		reason = c.Reason
	}
	cells := []any{p.Name, state, reason}
	if all {
		cells = append([]any{p.Namespace}, cells...)
	}
	return cells
}

func placementColumns(all bool, more ...string) []metav1.TableColumnDefinition {
	names := append([]string{"Name", "Status", "Reason"}, more...)
	if all {
		names = append([]string{"Namespace"}, names...)
	}
	return kit.Columns(names...)
}

func placementRows(list *v1beta1.PlacementList, decided map[types.NamespacedName][]kit.Decision, all bool) *metav1.Table {
	rows := &metav1.Table{ColumnDefinitions: placementColumns(all, "Count", "Selected Clusters")}
	for i := range list.Items {
		p := &list.Items[i]
		var names []string
		for _, d := range decided[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}] {
			names = append(names, d.ClusterName)
		}
		rows.Rows = append(rows.Rows, metav1.TableRow{Cells: append(placed(p, all), strconv.Itoa(len(names)), kit.OrNone(kit.SomeNames(names)))})
	}
	return rows
}

func decisionRows(list *v1beta1.PlacementList, decided map[types.NamespacedName][]kit.Decision, available map[string]string, all bool) *metav1.Table {
	rows := &metav1.Table{ColumnDefinitions: placementColumns(all, "Cluster", "Group", "Score", "Available")}
	for i := range list.Items {
		p := &list.Items[i]
		chosen := decided[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}]
		if len(chosen) == 0 {
			rows.Rows = append(rows.Rows, metav1.TableRow{Cells: append(placed(p, all), "<none>", "-", "-", "-")})
		}
		for _, d := range chosen {
			score, state := "-", kit.Unknown
			if p.Spec.SortBy == v1beta1.PlacementSortByScore {
				score = strconv.FormatInt(d.Score, 10)
			}
			if known, ok := available[d.ClusterName]; ok {
				state = known
			}
			rows.Rows = append(rows.Rows, metav1.TableRow{Cells: append(placed(p, all), d.ClusterName, d.Group, score, state)})
		}
	}
	return rows
}
