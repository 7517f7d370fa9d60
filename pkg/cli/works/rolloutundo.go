// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package works

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/cli/kit"
)

// undoTries is the number of attempts of an undo while other clients, such as the hub, write the set.
const undoTries = 10

type rolloutUndoOptions struct {
	rolloutOptions
	kit.DryRun
	revision int64
}

func newRolloutUndoCommand(opts *kit.Options) *cobra.Command {
	o := &rolloutUndoOptions{rolloutOptions: rolloutOptions{NamespaceFlag: kit.NamespaceFlag{Options: opts}, out: kit.NewTable()}}
	cmd := &cobra.Command{
		Use:   "undo RS",
		Short: "Roll back to the last template of a replica set that was a success",
		Long: "rollout undo writes the last spec.manifestWorkTemplate of a ManifestWorkReplicaSet that was a success on all clusters " +
			"and is not the current one. Placements and rollout strategies are not changed: they determine how the clusters get it. You become the author of the " +
			"set, so its works need your rights. This needs the permission to get and patch the set, and to list " +
			"manifestworkreplicasetrevisions in its namespace.",
		Example: kit.Example("kubectl hub rollout undo web -n dev\nkubectl hub rollout undo web -n dev --to-revision 3 --dry-run=server -o yaml"),
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	cmd.Flags().Int64Var(&o.revision, "to-revision", 0, "Revision to roll back to, of those that rollout history shows. 0 is the last one that is not the current template.")
	o.addTo(cmd)
	o.AddTo(cmd)
	o.out.AddObjectTo(cmd)
	return cmd
}

func (o *rolloutUndoOptions) run(ctx context.Context, name string) error {
	if err := o.out.Validate(); err != nil {
		return err
	}
	if o.revision < 0 {
		return fmt.Errorf("--to-revision must be 0 or above, not %d", o.revision)
	}
	h, set, err := o.open(ctx, name)
	if err != nil {
		return err
	}
	all, err := listRevisions(ctx, h, set)
	if err != nil {
		return err
	}
	to, err := o.choose(set, all)
	if err != nil {
		return err
	}
	is := fmt.Sprintf("rolled back to revision %d", to.Spec.Revision)
	if isPresent(set, to) {
		is = fmt.Sprintf("skipped rollback (current template already matches revision %d)", to.Spec.Revision)
	} else {
		set, err = o.write(ctx, h, set, to)
		if err != nil {
			return err
		}
	}
	if !o.out.IsTable() {
		return o.out.PrintObjects(o.Out, set)
	}
	_, err = fmt.Fprintln(o.Out, o.Outcome("manifestworkreplicaset", set.Name, is))
	return err
}

// choose returns the revision to restore.
func (o *rolloutUndoOptions) choose(set *workv1alpha1.ManifestWorkReplicaSet, all []workv1alpha1.ManifestWorkReplicaSetRevision) (*workv1alpha1.ManifestWorkReplicaSetRevision, error) {
	for i := range all {
		if r := &all[i]; o.revision == r.Spec.Revision || o.revision == 0 && !isPresent(set, r) {
			return r, nil
		}
	}
	if o.revision != 0 {
		return nil, fmt.Errorf("unable to find specified revision %d in history: kubectl hub rollout history %s -n %s shows all",
			o.revision, set.Name, set.Namespace)
	}
	return nil, fmt.Errorf("ManifestWorkReplicaSet %s/%s has no earlier template to roll back to: only the current one was a success "+
		"on all of its clusters", set.Namespace, set.Name)
}

// write replaces the template of the set that was read. It retries if only the status has changed since then.
func (o *rolloutUndoOptions) write(ctx context.Context, h *kit.HubClient, set *workv1alpha1.ManifestWorkReplicaSet, to *workv1alpha1.ManifestWorkReplicaSetRevision) (*workv1alpha1.ManifestWorkReplicaSet, error) {
	read := set
	for range undoTries {
		if o.IsClient() {
			set.Spec.ManifestWorkTemplate = to.Spec.ManifestWorkTemplate
			return set, nil
		}
		patch, err := json.Marshal([]map[string]any{
			{"op": "replace", "path": "/metadata/uid", "value": set.UID},
			{"op": "replace", "path": "/metadata/resourceVersion", "value": set.ResourceVersion},
			{"op": "replace", "path": "/spec/manifestWorkTemplate", "value": &to.Spec.ManifestWorkTemplate},
		})
		if err != nil {
			return nil, err
		}
		written, err := h.Clusters.WorkV1alpha1().ManifestWorkReplicaSets(set.Namespace).
			Patch(ctx, set.Name, types.JSONPatchType, patch, metav1.PatchOptions{DryRun: o.APIValue()})
		if err == nil {
			written.TypeMeta = set.TypeMeta
			return written, nil
		}
		if !apierrors.IsConflict(err) {
			return nil, err
		}
		set, err = getReplicaSet(ctx, h, set.Namespace, set.Name)
		if err != nil {
			return nil, err
		}
		if set.UID != read.UID || set.Generation != read.Generation {
			return nil, fmt.Errorf("the spec of ManifestWorkReplicaSet %s/%s was changed concurrently: check it, and try again", set.Namespace, set.Name)
		}
	}
	return nil, errors.New("too many concurrent changes of the ManifestWorkReplicaSet: try again")
}
