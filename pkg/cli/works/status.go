// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package works

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/inspect"
)

type workStatusOptions struct {
	*kit.Options
	onClusters
	kit.WaitFlags
	out *kit.Table
}

// NewCommand returns the command work.
func NewCommand(opts *kit.Options) *cobra.Command {
	o := &workStatusOptions{Options: opts, out: kit.NewTable()}
	cmd := &cobra.Command{
		Use:   "status WORK",
		Short: "Show the progress of the works of a name, and which manifests fail, and why",
		Long: "work status shows the works of one name on some clusters, or on all: on how many they are applied and available, and each manifest " +
			"that is not, with the reason. With -o wide it shows all manifests, with their status feedback. This needs the permission to " +
			"list manifestworks in the namespaces of the clusters.",
		Example:           kit.Example("kubectl hub work status web\nkubectl hub work status web --clusters c1 --wait"),
		Args:              kit.OneArg("a work"),
		ValidArgsFunction: kit.FirstArg(opts.CompletionFunc(kit.WorkNames)),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	o.addTo(opts, cmd)
	o.AddWait(cmd.Flags(), "the work is applied and available on all clusters")
	o.out.AddTo(cmd)
	return kit.NewGroup("work", "Show the progress of a work", cmd)
}

func (o *workStatusOptions) run(ctx context.Context, name string) error {
	if err := o.out.Validate(); err != nil {
		return err
	}
	if err := o.ValidateTimeout(); err != nil {
		return err
	}
	clusters, err := o.names()
	if err != nil {
		return err
	}
	h, err := o.Hub()
	if err != nil {
		return err
	}
	ctx, cancel := o.Limit(ctx)
	defer cancel()
	var late error
	if o.Wait {
		// Print the status even after a timeout.
		late = awaitWorks(ctx, o.Options, h, clusters, name)
		if late != nil && ctx.Err() == nil {
			return late
		}
	}
	works, err := h.ListWorks(context.WithoutCancel(ctx), clusters, name)
	switch {
	case err != nil:
		return err
	case len(works) == 0:
		return kit.NoWorkError(name)
	}
	if !o.out.IsTable() {
		err = o.out.PrintObjects(o.Out, &workv1.ManifestWorkList{Items: works})
	} else if o.out.Format() == "wide" {
		err = o.out.PrintRows(o.Out, manifestRows(works))
	} else {
		err = o.summary(name, works)
	}
	if err == nil {
		err = late
	}
	return err
}

// summary prints how many works are complete, and the state of those that are not.
func (o *workStatusOptions) summary(name string, works []workv1.ManifestWork) error {
	l := &kit.Lines{Out: o.Out}
	applied, available := 0, 0
	for i := range works {
		if inspect.WorkState(&works[i], workv1.WorkApplied) == "True" {
			applied++
		}
		if inspect.WorkState(&works[i], workv1.WorkAvailable) == "True" {
			available++
		}
	}
	l.Printf("Work %s is applied on %d of %s, and available on %d.", name, applied, kit.ClusterCount(len(works)), available)
	for i := range works {
		w := &works[i]
		if done, missing := inspect.IsDone(w); !done {
			all := inspect.Faults(w)
			if len(all) == 0 {
				l.Printf("  %s: %s", w.Namespace, missing)
			}
			for _, f := range all {
				l.Printf("  %s: %s", w.Namespace, f)
			}
		}
	}
	return l.Err
}

func manifestRows(works []workv1.ManifestWork) *metav1.Table {
	rows := &metav1.Table{ColumnDefinitions: kit.Columns("Cluster", "Manifest", "Applied", "Available", "Message", "Feedback")}
	for i := range works {
		w := &works[i]
		if len(w.Status.ResourceStatus.Manifests) == 0 {
			_, missing := inspect.IsDone(w)
			rows.Rows = append(rows.Rows, metav1.TableRow{Cells: []any{w.Namespace, "<none>", "Unknown", "Unknown", kit.OrNone(missing), "<none>"}})
		}
		for j := range w.Status.ResourceStatus.Manifests {
			m := &w.Status.ResourceStatus.Manifests[j]
			state := map[string]string{}
			message := ""
			for _, condition := range []string{workv1.ManifestApplied, workv1.ManifestAvailable} {
				state[condition] = "Unknown"
				if c := meta.FindStatusCondition(m.Conditions, condition); c != nil {
					state[condition] = string(c.Status)
					if c.Status != metav1.ConditionTrue && message == "" {
						message = c.Message
					}
				}
			}
			var feedback []string
			for k := range m.StatusFeedbacks.Values {
				feedback = append(feedback, m.StatusFeedbacks.Values[k].Name+"="+fieldText(&m.StatusFeedbacks.Values[k].Value))
			}
			rows.Rows = append(rows.Rows, metav1.TableRow{Cells: []any{w.Namespace, inspect.ManifestName(&m.ResourceMeta), state[workv1.ManifestApplied],
				state[workv1.ManifestAvailable], kit.OrNone(message), kit.OrNone(strings.Join(feedback, " "))}})
		}
	}
	return rows
}

func fieldText(v *workv1.FieldValue) string {
	switch {
	case v.Integer != nil:
		return strconv.FormatInt(*v.Integer, 10)
	case v.Boolean != nil:
		return strconv.FormatBool(*v.Boolean)
	case v.String != nil:
		return *v.String
	case v.JsonRaw != nil:
		return *v.JsonRaw
	}
	return ""
}
