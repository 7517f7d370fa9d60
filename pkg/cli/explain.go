// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/answers"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/diagnosis"
)

func newExplainPlacementCommand(g *global) *cobra.Command {
	in, cluster, out := &inNamespace{global: g}, "", newTable()
	cmd := &cobra.Command{
		Use:   "placement PLACEMENT",
		Short: "Show why a placement chooses the clusters that it chooses",
		Long: "explain placement shows the clusters that a placement chooses, with their scores and groups, and the step at which the others were excluded. " +
			"With --cluster it shows all steps for one cluster. The hub computes it as its scheduler does. It shows only clusters that you " +
			"may see. This needs the permission to get placements/explain in the namespace.",
		Example: example(`
kubectl hub explain placement web -n dev
kubectl hub explain placement web -n dev --cluster berlin-1`),
		Args:              oneArg("a placement"),
		ValidArgsFunction: first(g.names(in.placementNames)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := out.validate(); err != nil {
				return err
			}
			namespace, err := in.name()
			if err != nil {
				return err
			}
			h, err := g.hub()
			if err != nil {
				return err
			}
			e, err := h.answers().Explain(cmd.Context(), namespace, args[0], cluster)
			switch {
			case answers.IsMissing(err, "placements"):
				return fmt.Errorf("there is no placement %s in the namespace %s: kubectl hub get placements -A shows all", args[0], namespace)
			case answers.IsMissing(err, "managedclusters"):
				return fmt.Errorf("there is no cluster %s that you may see: kubectl hub get clusters shows all", cluster)
			case err != nil:
				return err
			}
			if !out.isTable() {
				return out.printObjects(g.Out, e)
			}
			p, err := h.clusters.ClusterV1beta1().Placements(namespace).Get(cmd.Context(), args[0], metav1.GetOptions{})
			if err != nil {
				p = nil // a user who may read the explanation need not have permission to get the placement
			}
			if cluster != "" && len(e.Status.Clusters) == 1 {
				return explainCluster(g.Out, p, e)
			}
			return explainAll(g, out, e)
		},
	}
	in.addTo(cmd, "the placement")
	cmd.Flags().StringVar(&cluster, "cluster", "", "Show all steps for this cluster.")
	must(cmd.RegisterFlagCompletionFunc("cluster", g.names(clusterNames)))
	out.addTo(cmd)
	return cmd
}

// lines writes lines and keeps the first error.
type lines struct {
	out io.Writer
	err error
}

// printf writes a line. It escapes control characters of what a server returned.
func (l *lines) printf(format string, args ...any) {
	if l.err != nil {
		return
	}
	_, l.err = fmt.Fprintln(l.out, command.Printable(fmt.Sprintf(format, args...)))
}

// problems prints the problems that hold for all clusters.
func problems(l *lines, e *v1beta1.PlacementExplanation) {
	if e.Status.Problem != "" {
		l.printf("%s", e.Status.Problem)
	}
	if e.Status.Partial {
		l.printf("Your rights do not cover all sets of the placement: there may be more clusters than are shown.")
	}
}

// explainAll prints the chosen clusters, and counts the others.
func explainAll(g *global, out *table, e *v1beta1.PlacementExplanation) error {
	l := &lines{out: g.Out}
	problems(l, e)
	chosen, rest := []*v1beta1.ExplainedCluster{}, map[string][]*v1beta1.ExplainedCluster{}
	for i := range e.Status.Clusters {
		if c := &e.Status.Clusters[i]; c.Chosen {
			chosen = append(chosen, c)
		} else {
			rest[c.FilteredBy] = append(rest[c.FilteredBy], c)
		}
	}
	switch {
	case len(e.Status.Clusters) == 0:
		l.printf("No cluster that you may see is in a set of the placement.")
		return l.err
	case len(chosen) == 0:
		l.printf("No cluster is chosen.")
	case l.err == nil:
		l.printf("Chosen: %s", clusterCount(len(chosen)))
		l.err = out.printRows(g.Out, chosenRows(chosen))
		if l.err != nil {
			return l.err
		}
	}
	if slices.ContainsFunc(chosen, func(c *v1beta1.ExplainedCluster) bool { return strings.Contains(scoresOf(c), "=?") }) {
		l.printf("A score with a question mark compares the cluster with others that you may not see.")
	}
	for _, count := range e.Status.Counts {
		if count.FilteredBy == "" {
			continue
		}
		l.printf("")
		l.printf("%s: %s", fallen(count.FilteredBy), clusterCount(int(count.Clusters)))
		reasons := map[string][]string{}
		for _, c := range rest[count.FilteredBy] {
			reasons[c.Message] = append(reasons[c.Message], c.ClusterName)
		}
		for _, reason := range maxFirst(reasons) {
			l.printf("  %s: %s", reason, someNames(reasons[reason]))
		}
	}
	if kept := rest[""]; len(kept) > 0 {
		l.printf("")
		l.printf("Not in the last decisions: %s", clusterCount(len(kept)))
	}
	return l.err
}

// fallen returns the heading for a cause.
func fallen(by string) string {
	switch by {
	case "Deletion":
		return "Being deleted"
	case "Predicate":
		return "Not matched by a predicate"
	case "TaintToleration":
		return "With a taint that is not tolerated"
	case "Spread":
		return "Left out by the spreadPolicy"
	case "NumberOfClusters":
		return "Not needed, since others come before"
	}
	return "Left out by " + by
}

func clusterCount(n int) string {
	if n == 1 {
		return "1 cluster"
	}
	return strconv.Itoa(n) + " clusters"
}

// someNames returns a list of names that is cut if it is long.
func someNames(names []string) string {
	const most = 10
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// maxFirst returns the keys, those with the most values first.
func maxFirst(of map[string][]string) (keys []string) {
	for key := range of {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(cmp.Compare(len(of[b]), len(of[a])), strings.Compare(a, b)) })
	return keys
}

func chosenRows(chosen []*v1beta1.ExplainedCluster) *metav1.Table {
	rows := &metav1.Table{ColumnDefinitions: columns("Cluster", "Group", "Rank", "Total", "Scores", "+Sets", "+Decision")}
	slices.SortStableFunc(chosen, func(a, b *v1beta1.ExplainedCluster) int {
		return cmp.Or(cmp.Compare(groupIndex(a), groupIndex(b)), cmp.Compare(rankOf(a), rankOf(b)))
	})
	for _, c := range chosen {
		rows.Rows = append(rows.Rows, metav1.TableRow{Cells: []any{
			c.ClusterName, diagnosis.GroupOf(c), numberOr(c.Rank, "-"), numberOr(c.TotalScore, "-"), scoresOf(c), orNone(strings.Join(c.ClusterSets, ",")), c.DecisionName,
		}})
	}
	return rows
}

func groupIndex(c *v1beta1.ExplainedCluster) int32 {
	if c.DecisionGroupIndex == nil {
		return 0
	}
	return *c.DecisionGroupIndex
}

func rankOf(c *v1beta1.ExplainedCluster) int32 {
	if c.Rank == nil {
		return 0
	}
	return *c.Rank
}

func numberOr[T int32 | int64](n *T, otherwise string) string {
	if n == nil {
		return otherwise
	}
	return strconv.FormatInt(int64(*n), 10)
}

// scoresOf returns the scores with their weights. A score that is not shown is a question mark.
func scoresOf(c *v1beta1.ExplainedCluster) string {
	parts := make([]string, len(c.Scores))
	for i := range c.Scores {
		parts[i] = fmt.Sprintf("%s=%s", c.Scores[i].Name, numberOr(c.Scores[i].Score, "?"))
		if w := c.Scores[i].Weight; w != 1 {
			parts[i] += fmt.Sprintf("×%d", w)
		}
	}
	return orNone(strings.Join(parts, " "))
}
