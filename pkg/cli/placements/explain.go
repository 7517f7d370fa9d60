// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placements

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/inspect/answers"
	"github.com/clusterhub/clusterhub/pkg/inspect/diagnosis"
)

// NewExplainCommand returns the command explain placement.
func NewExplainCommand(opts *kit.Options) *cobra.Command {
	in, cluster, out := &kit.NamespaceFlag{Options: opts}, "", kit.NewTable()
	cmd := &cobra.Command{
		Use:   "placement PLACEMENT",
		Short: "Show why a placement chooses the clusters that it chooses",
		Long: "explain placement shows the clusters that a placement chooses, with their scores and groups, and the step at which the others were excluded. " +
			"With --cluster it shows all steps for one cluster. The hub computes it as its scheduler does. It shows only clusters that you " +
			"may see. This needs the permission to get placements/explain in the namespace.",
		Example: kit.Example(`
kubectl hub explain placement web -n dev
kubectl hub explain placement web -n dev --cluster berlin-1`),
		Args:              kit.OneArg("a placement"),
		ValidArgsFunction: kit.FirstArg(opts.CompletionFunc(in.PlacementNames)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := out.Validate(); err != nil {
				return err
			}
			namespace, err := in.Name()
			if err != nil {
				return err
			}
			h, err := opts.Hub()
			if err != nil {
				return err
			}
			e, err := h.Answers().Explain(cmd.Context(), namespace, args[0], cluster)
			switch {
			case answers.IsMissing(err, "placements"):
				return fmt.Errorf("there is no placement %s in the namespace %s: kubectl hub get placements -A shows all", args[0], namespace)
			case answers.IsMissing(err, "managedclusters"):
				return fmt.Errorf("there is no cluster %s that you may see: kubectl hub get clusters shows all", cluster)
			case err != nil:
				return err
			}
			if !out.IsTable() {
				return out.PrintObjects(opts.Out, e)
			}
			p, err := h.Clusters.ClusterV1beta1().Placements(namespace).Get(cmd.Context(), args[0], metav1.GetOptions{})
			if err != nil {
				p = nil // a user who may read the explanation need not have permission to get the placement
			}
			if cluster != "" && len(e.Status.Clusters) == 1 {
				return explainCluster(opts.Out, p, e)
			}
			return explainAll(opts, out, e)
		},
	}
	in.AddTo(cmd, "the placement")
	cmd.Flags().StringVar(&cluster, "cluster", "", "Show all steps for this cluster.")
	kit.Must(cmd.RegisterFlagCompletionFunc("cluster", opts.CompletionFunc(kit.ClusterNames)))
	out.AddTo(cmd)
	return cmd
}

// problems prints the problems that hold for all clusters.
func problems(l *kit.Lines, e *v1beta1.PlacementExplanation) {
	if e.Status.Problem != "" {
		l.Printf("%s", e.Status.Problem)
	}
	if e.Status.Partial {
		l.Printf("Your rights do not cover all sets of the placement: there may be more clusters than are shown.")
	}
}

// explainAll prints the chosen clusters, and counts the others.
func explainAll(opts *kit.Options, out *kit.Table, e *v1beta1.PlacementExplanation) error {
	l := &kit.Lines{Out: opts.Out}
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
		l.Printf("No cluster that you may see is in a set of the placement.")
		return l.Err
	case len(chosen) == 0:
		l.Printf("No cluster is chosen.")
	case l.Err == nil:
		l.Printf("Chosen: %s", kit.ClusterCount(len(chosen)))
		l.Err = out.PrintRows(opts.Out, chosenRows(chosen))
		if l.Err != nil {
			return l.Err
		}
	}
	if slices.ContainsFunc(chosen, func(c *v1beta1.ExplainedCluster) bool { return strings.Contains(scoresOf(c), "=?") }) {
		l.Printf("A score with a question mark compares the cluster with others that you may not see.")
	}
	for _, count := range e.Status.Counts {
		if count.FilteredBy == "" {
			continue
		}
		l.Printf("")
		l.Printf("%s: %s", causeHeading(count.FilteredBy), kit.ClusterCount(int(count.Clusters)))
		reasons := map[string][]string{}
		for _, c := range rest[count.FilteredBy] {
			reasons[c.Message] = append(reasons[c.Message], c.ClusterName)
		}
		for _, reason := range maxFirst(reasons) {
			l.Printf("  %s: %s", reason, kit.SomeNames(reasons[reason]))
		}
	}
	if kept := rest[""]; len(kept) > 0 {
		l.Printf("")
		l.Printf("Not in the last decisions: %s", kit.ClusterCount(len(kept)))
	}
	return l.Err
}

// causeHeading returns the heading for a cause.
func causeHeading(by string) string {
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

// maxFirst returns the keys, those with the most values first.
func maxFirst(of map[string][]string) (keys []string) {
	for key := range of {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(cmp.Compare(len(of[b]), len(of[a])), strings.Compare(a, b)) })
	return keys
}

func chosenRows(chosen []*v1beta1.ExplainedCluster) *metav1.Table {
	rows := &metav1.Table{ColumnDefinitions: kit.Columns("Cluster", "Group", "Rank", "Total", "Scores", "+Sets", "+Decision")}
	slices.SortStableFunc(chosen, func(a, b *v1beta1.ExplainedCluster) int {
		return cmp.Or(cmp.Compare(groupIndex(a), groupIndex(b)), cmp.Compare(rankOf(a), rankOf(b)))
	})
	for _, c := range chosen {
		rows.Rows = append(rows.Rows, metav1.TableRow{Cells: []any{
			c.ClusterName, diagnosis.GroupOf(c), numberOr(c.Rank, "-"), numberOr(c.TotalScore, "-"), scoresOf(c), kit.OrNone(strings.Join(c.ClusterSets, ",")), c.DecisionName,
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
	return kit.OrNone(strings.Join(parts, " "))
}
