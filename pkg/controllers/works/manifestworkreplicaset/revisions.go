// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestworkreplicaset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/work"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	workv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/rollout"
)

const (
	// maxRevisions is the number of templates of a set that are kept: the last successful one, and the one before it for an undo.
	maxRevisions = 2
	// reviseAgain is the time until a revision that the server has refused is tried again. A quota may be the cause.
	reviseAgain = 2 * time.Minute
)

// errNotKept reports that the server has refused a revision. Earlier revisions stay.
var errNotKept = errors.New("the revision was refused")

// slimRevision replaces the template of a revision in the cache by its digest.
func slimRevision(r *workv1alpha1.ManifestWorkReplicaSetRevision) {
	if len(r.Spec.ManifestWorkTemplate.Workload.Manifests) == 0 && r.Annotations[digestAnnotation] != "" {
		return // has been done
	}
	if r.Annotations == nil {
		r.Annotations = map[string]string{}
	}
	r.Annotations[digestAnnotation] = digest(&r.Spec.ManifestWorkTemplate)
	r.Spec.ManifestWorkTemplate = workv1.ManifestWorkSpec{}
}

// revisions returns the revisions with the label of a set, also those of an earlier set of the name, with the latest first.
func (r *Reconciler) revisions(ctx context.Context, set types.NamespacedName) ([]workv1alpha1.ManifestWorkReplicaSetRevision, error) {
	list := &workv1alpha1.ManifestWorkReplicaSetRevisionList{}
	if err := r.client.List(ctx, list, client.InNamespace(set.Namespace), client.MatchingLabels{work.ReplicaSetLabel: set.Namespace + "." + set.Name},
		client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b workv1alpha1.ManifestWorkReplicaSetRevision) int {
		return cmp.Or(cmp.Compare(b.Spec.Revision, a.Spec.Revision), cmp.Compare(a.Name, b.Name))
	})
	return list.Items, nil
}

// forgetRevisions deletes the revisions of a set that is gone. The garbage collector does the same, but not if the set was orphaned.
func (r *Reconciler) forgetRevisions(ctx context.Context, set types.NamespacedName) error {
	all, err := r.revisions(ctx, set)
	if err != nil {
		return err
	}
	return r.deleteRevisions(ctx, all)
}

func (r *Reconciler) deleteRevisions(ctx context.Context, revisions []workv1alpha1.ManifestWorkReplicaSetRevision) error {
	var errs []error
	for i := range revisions {
		one := &revisions[i]
		if !one.DeletionTimestamp.IsZero() {
			continue
		}
		gone := &workv1alpha1.ManifestWorkReplicaSetRevision{ObjectMeta: metav1.ObjectMeta{Namespace: one.Namespace, Name: one.Name}}
		if err := kit.IgnoreStale(r.client.Delete(ctx, gone, kit.AsRead(one))); err != nil {
			errs = append(errs, fmt.Errorf("ManifestWorkReplicaSetRevision %s/%s: %w", one.Namespace, one.Name, err))
		}
	}
	return errors.Join(errs...)
}

// hasSucceeded reports whether all clusters have the template and have succeeded, whether there is at least one, and whether the status says so:
// the server accepts a revision only then.
func (r *round) hasSucceeded() bool {
	said := meta.FindStatusCondition(r.set.Status.Conditions, workv1alpha1.ManifestWorkReplicaSetConditionPlacementRolledOut)
	if said == nil || said.Status != metav1.ConditionTrue || said.ObservedGeneration != r.set.Generation || len(r.surplus) > 0 {
		return false
	}
	succeeded := 0
	for _, t := range r.targets {
		if t.problem != nil || t.plan.Counts[rollout.Succeeded] != len(t.plan.Clusters) {
			return false
		}
		succeeded += len(t.plan.Clusters)
	}
	return succeeded > 0
}

// revise writes and prunes revisions, as far as the server allows.
func (r *round) revise(ctx context.Context) error {
	err := r.syncRevisions(ctx)
	if errors.Is(err, errNotKept) {
		return nil
	}
	return err
}

// syncRevisions writes a revision of the template if it has succeeded, and prunes all but that and the last one with a different template.
func (r *round) syncRevisions(ctx context.Context) error {
	if !r.hasSucceeded() || r.now.Before(r.memory.revise) {
		return nil
	}
	all, err := r.revisions(ctx, r.key)
	if err != nil {
		return err
	}
	kept, surplus := map[string]bool{}, []workv1alpha1.ManifestWorkReplicaSetRevision(nil)
	own := slices.DeleteFunc(slices.Clone(all), func(one workv1alpha1.ManifestWorkReplicaSetRevision) bool {
		if one.Spec.ReplicaSetUID == r.set.UID {
			return false
		}
		surplus = append(surplus, one) // an earlier set had the name
		return true
	})
	if len(own) == 0 || own[0].Annotations[digestAnnotation] != r.memory.template && own[0].Spec.Revision < r.set.Generation {
		if err := r.addRevision(ctx); err != nil {
			return err
		}
		kept[r.memory.template] = true
	}
	for _, one := range own {
		template := one.Annotations[digestAnnotation]
		if kept[template] || len(kept) == maxRevisions {
			surplus = append(surplus, one)
		}
		kept[template] = true
	}
	return r.deleteRevisions(ctx, surplus)
}

// addRevision creates a revision of the current template. If the cache is stale, the server refuses a second one of the same name.
func (r *round) addRevision(ctx context.Context) error {
	one := &workv1alpha1.ManifestWorkReplicaSetRevision{ObjectMeta: metav1.ObjectMeta{
		Namespace: r.set.Namespace, Name: work.RevisionName(r.set.Name, r.set.UID, r.set.Generation),
		Labels: map[string]string{work.ReplicaSetLabel: r.set.Namespace + "." + r.set.Name},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: workv1alpha1.SchemeGroupVersion.String(), Kind: "ManifestWorkReplicaSet", Name: r.set.Name, UID: r.set.UID,
			Controller: new(true),
		}},
	}}
	one.Spec.ReplicaSet, one.Spec.ReplicaSetUID, one.Spec.Revision = r.set.Name, r.set.UID, r.set.Generation
	r.set.Spec.ManifestWorkTemplate.DeepCopyInto(&one.Spec.ManifestWorkTemplate)
	defer r.wrote(r.clock.Now())
	err := r.client.Create(ctx, one)
	switch {
	case err == nil || apierrors.IsAlreadyExists(err):
		return nil
	case isRefusal(err):
		// The rollout continues without a revision. If the set has changed, an event enqueues it.
		r.memory.revise = r.now.Add(reviseAgain)
		ctrl.LoggerFrom(ctx).Info("Failed to store the rolled-out template for kubectl hub rollout undo", "manifestWorkReplicaSet", klog.KRef(r.key.Namespace, r.key.Name), "err", err.Error())
		return errNotKept
	}
	return fmt.Errorf("ManifestWorkReplicaSetRevision %s/%s: %w", one.Namespace, one.Name, err)
}
