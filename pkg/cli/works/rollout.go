// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package works

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
	"github.com/clusterhub/clusterhub/pkg/command/paging"
	"github.com/clusterhub/clusterhub/pkg/inspect"
)

// rolloutOptions are the options of all commands about the rollout of a replica set.
type rolloutOptions struct {
	kit.NamespaceFlag
	out *kit.Table
}

// NewRolloutCommand returns the command rollout.
func NewRolloutCommand(opts *kit.Options) *cobra.Command {
	return kit.NewGroup("rollout", "Show the rollout of a replica set of works, and roll back to an earlier template",
		newRolloutHistoryCommand(opts), newRolloutStatusCommand(opts), newRolloutUndoCommand(opts))
}

func (o *rolloutOptions) addTo(cmd *cobra.Command) {
	cmd.Args = kit.OneArg("a ManifestWorkReplicaSet")
	cmd.ValidArgsFunction = kit.FirstArg(o.CompletionFunc(o.replicaSetNames))
	o.AddTo(cmd, "the ManifestWorkReplicaSet")
}

// replicaSetNames completes the replica sets of the namespace.
func (o *rolloutOptions) replicaSetNames(ctx context.Context, h *kit.HubClient) (names []string, err error) {
	namespace, err := o.Name()
	if err != nil {
		return nil, err
	}
	list, err := h.Clusters.WorkV1alpha1().ManifestWorkReplicaSets(namespace).List(ctx, metav1.ListOptions{Limit: kit.MaxCompletions})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, nil
}

// open reads the replica set.
func (o *rolloutOptions) open(ctx context.Context, name string) (*kit.HubClient, *workv1alpha1.ManifestWorkReplicaSet, error) {
	namespace, err := o.Name()
	if err != nil {
		return nil, nil, err
	}
	h, err := o.Hub()
	if err != nil {
		return nil, nil, err
	}
	set, err := getReplicaSet(ctx, h, namespace, name)
	return h, set, err
}

func getReplicaSet(ctx context.Context, h *kit.HubClient, namespace, name string) (*workv1alpha1.ManifestWorkReplicaSet, error) {
	set, err := h.Clusters.WorkV1alpha1().ManifestWorkReplicaSets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	set.TypeMeta = metav1.TypeMeta{APIVersion: workv1alpha1.SchemeGroupVersion.String(), Kind: "ManifestWorkReplicaSet"}
	return set, nil
}

// listRevisions returns the revisions of a set, the latest first. It omits revisions of a deleted set with the same name.
func listRevisions(ctx context.Context, h *kit.HubClient, set *workv1alpha1.ManifestWorkReplicaSet) ([]workv1alpha1.ManifestWorkReplicaSetRevision, error) {
	list, err := paging.List(ctx, h.Clusters.WorkV1alpha1().ManifestWorkReplicaSetRevisions(set.Namespace).List, kit.WorksOfReplicaSet(set))
	if err != nil {
		return nil, err
	}
	all := slices.DeleteFunc(list.Items, func(r workv1alpha1.ManifestWorkReplicaSetRevision) bool {
		return r.Spec.ReplicaSet != set.Name || r.Spec.ReplicaSetUID != set.UID
	})
	slices.SortFunc(all, func(a, b workv1alpha1.ManifestWorkReplicaSetRevision) int {
		return cmp.Compare(b.Spec.Revision, a.Spec.Revision)
	})
	for i := range all {
		all[i].TypeMeta = metav1.TypeMeta{APIVersion: workv1alpha1.SchemeGroupVersion.String(), Kind: "ManifestWorkReplicaSetRevision"}
	}
	return all, nil
}

// isPresent reports whether a set has the template of a revision.
func isPresent(set *workv1alpha1.ManifestWorkReplicaSet, r *workv1alpha1.ManifestWorkReplicaSetRevision) bool {
	return equality.Semantic.DeepEqual(set.Spec.ManifestWorkTemplate, r.Spec.ManifestWorkTemplate)
}

// pendingRevision returns what the hub has yet to do so that rollout undo can go back to the current template of a set that is rolled out, or "".
func pendingRevision(ctx context.Context, h *kit.HubClient, set *workv1alpha1.ManifestWorkReplicaSet) (string, error) {
	if set.Status.Summary.DesiredTotal == 0 {
		return "", nil // a template that no cluster has is not recorded
	}
	all, err := listRevisions(ctx, h, set)
	switch {
	case apierrors.IsForbidden(err) || apierrors.IsNotFound(err):
		// The status requires no permission to read templates, and a hub of Open Cluster Management has no revisions.
		return "", nil
	case err != nil:
		return "", err
	case len(all) > 0 && isPresent(set, &all[0]):
		return "", nil
	}
	return "the template is not in the rollout history yet: the hub records it when all clusters have succeeded for minSuccessTime", nil
}

func newRolloutHistoryCommand(opts *kit.Options) *cobra.Command {
	o := &rolloutOptions{NamespaceFlag: kit.NamespaceFlag{Options: opts}, out: kit.NewTable()}
	cmd := &cobra.Command{
		Use:   "history RS",
		Short: "Show the templates that a replica set can be rolled back to",
		Long: "rollout history shows the templates of a ManifestWorkReplicaSet that were a success on all of its clusters. The hub keeps the " +
			"last two. With -o yaml it prints them. This needs the permission to get the set, and to list manifestworkreplicasetrevisions in " +
			"its namespace.",
		Example: kit.Example("kubectl hub rollout history web -n dev"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.out.Validate(); err != nil {
				return err
			}
			h, set, err := o.open(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			all, err := listRevisions(cmd.Context(), h, set)
			if err != nil {
				return err
			}
			if !o.out.IsTable() {
				return o.out.PrintObjects(o.Out, &workv1alpha1.ManifestWorkReplicaSetRevisionList{Items: all})
			}
			if len(all) == 0 {
				_, err := fmt.Fprintln(o.ErrOut, "No rollout history found.")
				return err
			}
			rows := &metav1.Table{ColumnDefinitions: kit.Columns("Revision", "Manifests", "Present", "Age")}
			for i := range all {
				r := &all[i]
				rows.Rows = append(rows.Rows, metav1.TableRow{Cells: []any{strconv.FormatInt(r.Spec.Revision, 10),
					strconv.Itoa(len(r.Spec.ManifestWorkTemplate.Workload.Manifests)), strconv.FormatBool(isPresent(set, r)), kit.Age(r.CreationTimestamp)}})
			}
			return o.out.PrintRows(o.Out, rows)
		},
	}
	o.addTo(cmd)
	o.out.AddTo(cmd)
	return cmd
}

type rolloutStatusOptions struct {
	rolloutOptions
	kit.WaitFlags
}

func newRolloutStatusCommand(opts *kit.Options) *cobra.Command {
	o := &rolloutStatusOptions{rolloutOptions: rolloutOptions{NamespaceFlag: kit.NamespaceFlag{Options: opts}, out: kit.NewTable()}}
	cmd := &cobra.Command{
		Use:   "status RS",
		Short: "Show how far the rollout of a replica set is, and what it waits for",
		Long: "rollout status shows on how many clusters a ManifestWorkReplicaSet is rolled out, what the rollout waits for, and the clusters whose work " +
			"is not applied or not available, if you may list manifestworks. With --wait it ends when all clusters have the template, its objects " +
			"are available, and the hub has recorded the template for rollout undo, if you may list manifestworkreplicasetrevisions; or with an " +
			"error when the timeout expires. The hub records a template when all clusters have succeeded for the minSuccessTime of their placement.",
		Example: kit.Example("kubectl hub rollout status web -n dev\nkubectl hub rollout status web -n dev --wait --timeout 10m"),
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	o.addTo(cmd)
	o.AddWait(cmd.Flags(), "the replica set is rolled out, and rollout undo can go back to its template")
	o.out.AddObjectTo(cmd)
	return cmd
}

func (o *rolloutStatusOptions) run(ctx context.Context, name string) error {
	if err := o.out.Validate(); err != nil {
		return err
	}
	if err := o.ValidateTimeout(); err != nil {
		return err
	}
	h, set, err := o.open(ctx, name)
	if err != nil {
		return err
	}
	ctx, cancel := o.Limit(ctx)
	defer cancel()
	var late error
	if o.Wait {
		uid := set.UID
		late = o.Await(ctx, "the rollout of ManifestWorkReplicaSet "+set.Namespace+"/"+name, func(ctx context.Context) (bool, string, error) {
			now, err := getReplicaSet(ctx, h, set.Namespace, name)
			if err != nil {
				return false, "", err
			}
			if now.UID != uid {
				return false, "", fmt.Errorf("ManifestWorkReplicaSet %s/%s was deleted and created again", set.Namespace, name)
			}
			set = now
			if done, why := inspect.IsRolledOut(set); !done {
				return false, why, nil
			}
			pending, err := pendingRevision(ctx, h, set)
			return err == nil && pending == "", pending, err
		})
		// Print the status even after a timeout.
		if late != nil && ctx.Err() == nil {
			return late
		}
	}
	if !o.out.IsTable() {
		err = o.out.PrintObjects(o.Out, set)
	} else {
		err = o.printProgress(context.WithoutCancel(ctx), h, set)
	}
	if err == nil {
		err = late
	}
	return err
}

// printProgress prints the progress of the rollout, with a line for each cluster that is not complete.
func (o *rolloutStatusOptions) printProgress(ctx context.Context, h *kit.HubClient, set *workv1alpha1.ManifestWorkReplicaSet) error {
	l, s := &kit.Lines{Out: o.Out}, &set.Status.Summary
	done, why := inspect.IsRolledOut(set)
	if done {
		l.Printf("ManifestWorkReplicaSet %s/%s successfully rolled out to %s.", set.Namespace, set.Name, kit.ClusterCount(s.DesiredTotal))
		pending, err := pendingRevision(ctx, h, set)
		if err != nil {
			return err
		}
		if pending != "" {
			l.Printf("%s", pending)
		}
		return l.Err
	}
	l.Printf("Waiting for the rollout of ManifestWorkReplicaSet %s/%s to finish: %d of %s updated, %d available, %d degraded.",
		set.Namespace, set.Name, s.Updated, kit.ClusterCount(s.DesiredTotal), s.Available, s.Degraded)
	l.Printf("%s", why)
	works, err := paging.List(ctx, h.Clusters.WorkV1().ManifestWorks(metav1.NamespaceAll).List, kit.WorksOfReplicaSet(set))
	if apierrors.IsForbidden(err) {
		// A team may read its set. The works require permission to read what is on the clusters.
		return l.Err
	}
	if err != nil {
		return err
	}
	for i := range works.Items {
		w := &works.Items[i]
		if done, missing := inspect.IsDone(w); !done {
			l.Printf("  %s: %s", w.Namespace, missing)
		}
	}
	return l.Err
}
