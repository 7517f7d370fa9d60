// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestworkreplicaset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

// errElsewhere reports that a ManifestWork of another owner has the name.
var errElsewhere = errors.New("a ManifestWork with the name exists that does not belong to this set: delete it")

// isRefusal reports whether the server refused a write for a reason that concerns this write only. Then nothing was written, and other writes may
// succeed.
func isRefusal(err error) bool {
	return errors.Is(err, errElsewhere) || apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsRequestEntityTooLargeError(err) || apierrors.IsMethodNotSupported(err)
}

// write applies the template to a cluster: it creates a work or updates the existing one.
func (r *round) write(ctx context.Context, t *placementTarget, cluster string) error {
	defer r.wrote(r.clock.Now())
	w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: cluster}}
	operation := "create"
	err := func() error {
		if now := t.works[cluster]; now != nil {
			w.Name, operation = now.work.Name, "update"
			return r.replaceSpec(ctx, now, w, t.placement)
		}
		w.Name = workName(r.key, t.placement)
		w.Labels, w.Annotations = labelsOf(r.set, t.placement), r.annotations()
		r.set.Spec.ManifestWorkTemplate.DeepCopyInto(&w.Spec)
		err := r.client.Create(ctx, w)
		if apierrors.IsAlreadyExists(err) {
			there := &workv1.ManifestWork{}
			if r.client.Get(ctx, types.NamespacedName{Namespace: cluster, Name: workName(r.key, t.placement)}, there) == nil &&
				ownerFrom(there.Labels) != owner(r.key) {
				return errElsewhere
			}
		}
		if kit.IsGone(err) {
			return apierrors.NewForbidden(workv1.SchemeGroupVersion.WithResource("manifestworks").GroupResource(), w.Name, err)
		}
		return err
	}()
	r.metrics.wrote(operation, err)
	if err != nil {
		return fmt.Errorf("ManifestWork %s/%s: %w", cluster, w.Name, err)
	}
	// A server may set defaults for fields that the template does not have, so the digest of its spec counts as current, too.
	if d := digest(&w.Spec); !slices.Contains(r.memory.digests, d) {
		r.memory.digests = append(r.memory.digests, d)
	}
	r.learn(w)
	return nil
}

// annotations returns the annotations of a work that is written now.
func (r *round) annotations() map[string]string {
	return map[string]string{ownerAnnotation: r.key.String(), writtenAnnotation: r.now.UTC().Format(time.RFC3339Nano)}
}

// operation is an operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// replaceSpec writes the whole spec. A merge patch would leave fields in it that the template does not have, since the cache does not have the
// spec. The patch has the resource version, so that it applies only to the work as it is known.
func (r *round) replaceSpec(ctx context.Context, now *entry, w *workv1.ManifestWork, placement string) error {
	annotations := maps.Clone(now.work.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	delete(annotations, digestAnnotation)
	delete(annotations, succeededAnnotation)
	maps.Copy(annotations, r.annotations())
	labels := maps.Clone(now.work.Labels)
	maps.Copy(labels, labelsOf(r.set, placement))
	patch, err := json.Marshal([]operation{
		{"replace", "/metadata/uid", now.work.UID},
		{"replace", "/metadata/resourceVersion", now.work.ResourceVersion},
		{"add", "/metadata/labels", labels},
		{"add", "/metadata/annotations", annotations},
		{"replace", "/spec", &r.set.Spec.ManifestWorkTemplate},
	})
	if err != nil {
		return err
	}
	return r.client.Patch(ctx, w, client.RawPatch(types.JSONPatchType, patch))
}

// mark changes only labels and annotations of a work.
func (r *round) mark(ctx context.Context, e *entry, change func(*workv1.ManifestWork)) error {
	defer r.wrote(r.clock.Now())
	w := e.work.DeepCopy()
	changed, err := kit.Patch(ctx, r.client, w, change)
	if changed || err != nil {
		r.metrics.wrote("note", err)
	}
	if err != nil {
		return fmt.Errorf("ManifestWork %s/%s: %w", e.work.Namespace, e.work.Name, err)
	}
	if changed {
		r.learn(w)
	}
	return nil
}

// remove deletes a work, if it is as it was read.
func (r *round) remove(ctx context.Context, e *entry) error {
	defer r.wrote(r.clock.Now())
	err := r.client.Delete(ctx, &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: e.work.Namespace, Name: e.work.Name}}, kit.AsRead(e.work))
	err = kit.IgnoreGone(err)
	r.metrics.wrote("delete", err)
	if err != nil {
		return fmt.Errorf("ManifestWork %s/%s: %w", e.work.Namespace, e.work.Name, err)
	}
	w := e.work.DeepCopy()
	w.DeletionTimestamp = &metav1.Time{Time: r.now}
	r.works.setDeleted(w, r.now)
	return nil
}

// wrote adds the time that a write has taken.
func (r *round) wrote(since time.Time) { r.writing += r.clock.Since(since) }

// learn records a write before a watch reports it.
func (r *round) learn(w *workv1.ManifestWork) {
	slim(w)
	r.works.set(w, r.clock.Now())
}
