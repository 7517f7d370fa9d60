// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package works

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/inspect"
)

// onClusters are the flags that select the clusters of a command. The namespace of a cluster on the hub has its name.
type onClusters struct {
	clusters, more []string
	namespace      string
	all            bool
}

func (o *onClusters) addTo(opts *kit.Options, cmd *cobra.Command) {
	kit.AddClusterFlags(opts, cmd, &o.clusters, &o.more)
	cmd.Flags().StringVarP(&o.namespace, "namespace", "n", "", "Same as --clusters, of one cluster.")
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "Select all clusters. This is the default of commands that only read.")
	for _, name := range []string{"clusters", "cluster", "namespace"} {
		cmd.MarkFlagsMutuallyExclusive("all-namespaces", name)
	}
}

// names returns the clusters that the flags name, or nil for all.
func (o *onClusters) names() ([]string, error) {
	if o.all || len(o.clusters)+len(o.more) == 0 && o.namespace == "" {
		return nil, nil
	}
	more := o.more
	if o.namespace != "" {
		more = append(slices.Clone(more), o.namespace)
	}
	return kit.NamedClusters("look at", o.clusters, more)
}

// awaitWorks waits until all works of a name are done.
func awaitWorks(ctx context.Context, opts *kit.Options, h *kit.HubClient, clusters []string, name string) error {
	return opts.Await(ctx, "work "+name, func(ctx context.Context) (bool, string, error) {
		works, err := h.ListWorks(ctx, clusters, name)
		if err != nil {
			return false, "", err
		}
		done, missing := 0, ""
		for i := range works {
			if ok, why := inspect.IsDone(&works[i]); ok {
				done++
			} else if missing == "" {
				missing = "; " + works[i].Namespace + ": " + why
			}
		}
		wanted := max(len(works), len(clusters))
		return wanted > 0 && done == wanted, fmt.Sprintf("done on %d of %s%s", done, kit.ClusterCount(wanted), missing), nil
	})
}

// NewGetCommand returns the command get works.
func NewGetCommand(opts *kit.Options) *cobra.Command {
	on, out := &onClusters{}, kit.NewTable()
	cmd := &cobra.Command{
		Use:     "works [WORK]",
		Aliases: []string{"work"},
		Short:   "Show the works of clusters, and whether they are applied",
		Long: "get works shows the ManifestWorks of some clusters, or of all. This needs the permission to list manifestworks in the " +
			"namespaces of the clusters.",
		Example:           kit.Example("kubectl hub get works --clusters c1,c2\nkubectl hub get works web -o wide"),
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: kit.FirstArg(opts.CompletionFunc(kit.WorkNames)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := out.Validate(); err != nil {
				return err
			}
			clusters, err := on.names()
			if err != nil {
				return err
			}
			h, err := opts.Hub()
			if err != nil {
				return err
			}
			works, err := h.ListWorks(cmd.Context(), clusters, strings.Join(args, ""))
			if err != nil {
				return err
			}
			if !out.IsTable() {
				return out.PrintObjects(opts.Out, &workv1.ManifestWorkList{Items: works})
			}
			if len(works) == 0 {
				_, err := fmt.Fprintln(opts.ErrOut, "No works found.")
				return err
			}
			return out.PrintRows(opts.Out, workRows(works))
		},
	}
	on.addTo(opts, cmd)
	out.AddTo(cmd)
	return cmd
}

func workRows(works []workv1.ManifestWork) *metav1.Table {
	rows := &metav1.Table{ColumnDefinitions: kit.Columns("Name", "Cluster", "Number Of Manifests", "Applied", "Available", "+Progressing", "+Degraded",
		"+Complete", "+Problem", "+Age")}
	for i := range works {
		w := &works[i]
		problem := ""
		if all := inspect.Faults(w); len(all) > 0 {
			problem = all[0].String()
			if len(all) > 1 {
				problem = fmt.Sprintf("%s (and %d more)", problem, len(all)-1)
			}
		}
		rows.Rows = append(rows.Rows, metav1.TableRow{Cells: []any{
			w.Name, w.Namespace, strconv.Itoa(len(w.Spec.Workload.Manifests)), inspect.WorkState(w, workv1.WorkApplied), inspect.WorkState(w, workv1.WorkAvailable),
			inspect.WorkState(w, workv1.WorkProgressing), inspect.WorkState(w, workv1.WorkDegraded), inspect.WorkState(w, workv1.WorkComplete), kit.OrNone(problem),
			kit.Age(w.CreationTimestamp),
		}})
	}
	return rows
}
