// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
	"github.com/clusterhub/clusterhub/pkg/agent/work/memory"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
)

// finish deletes the objects of a work that is being deleted, and then removes the finalizer of the work. Each step starts after the previous step is
// known to be complete.
func (a *Agent) finish(ctx context.Context, work *workv1.ManifestWork) (again time.Duration, err error) {
	if !slices.Contains(work.Finalizers, workv1.ManifestWorkFinalizer) {
		a.forget(work.Name)
		return 0, nil
	}
	s := a.state(work)
	// The cache may be stale: a new work of this name may exist.
	if err := a.hub.isCurrent(ctx, work); err != nil {
		return 0, err
	}
	if !meta.IsStatusConditionTrue(work.Status.Conditions, workv1.WorkDeleting) {
		if err := a.hub.reportDeleting(ctx, work, nil); err != nil {
			return 0, err
		}
	}
	record, err := a.Memory.Find(ctx, work.Name)
	if err != nil {
		return 0, err
	}
	if record != nil {
		s.record = record
		if err := a.release(ctx, work, record); err != nil {
			return s.waits.Next(), errors.Join(err, a.hub.reportDeleting(ctx, work, []string{err.Error()}))
		}
		if err := a.Memory.StartDeletion(ctx, record); err != nil {
			return 0, err
		}
		left, err := a.removeAll(ctx, record)
		if err != nil || len(left) > 0 {
			return s.waits.Next(), errors.Join(err, a.hub.reportDeleting(ctx, work, left))
		}
		if err := a.Memory.CompleteDeletion(ctx, record); err != nil {
			return 0, err
		}
		if left, err := a.Memory.Find(ctx, work.Name); err != nil || left != nil {
			return s.waits.Next(), err // another client has set a finalizer on the record
		}
	}
	left := slices.DeleteFunc(slices.Clone(work.Finalizers), func(f string) bool { return f == workv1.ManifestWorkFinalizer })
	if err := a.hub.setFinalizers(ctx, work, left); err != nil && !apierrors.IsNotFound(err) {
		return 0, err
	}
	a.forget(work.Name)
	return 0, nil
}

// release orphans the objects that stay when the work is deleted: those that are recorded, and those that the work names, in case another client
// changed the record.
func (a *Agent) release(ctx context.Context, work *workv1.ManifestWork, record *memory.Record) (failed error) {
	var targets []apply.Target
	for _, resource := range record.Resources {
		targets = append(targets, resource.Target)
	}
	for _, one := range a.plan(work) {
		if one.target {
			targets = append(targets, one.manifest.Target)
		}
	}
	for _, t := range targets {
		if !a.stays(work.Spec.DeleteOption, t) {
			continue
		}
		uid, _ := record.UID(t)
		done, err := a.deleteOrOrphan(ctx, work.Name, record.Owner, memory.AppliedResource{Target: t, UID: uid}, true)
		if err == nil && !done {
			err = errors.New("the cluster has stopped or started to serve its resource")
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("orphaning %s: %w", t, err))
		}
	}
	return failed
}

// deleteOrOrphan deletes an object, or orphans one that stays, and reports whether nothing is left to do. If the object still exists, its deletion will be
// an event.
func (a *Agent) deleteOrOrphan(ctx context.Context, work string, owner apply.Owner, one memory.AppliedResource, stays bool) (done bool, err error) {
	t, served := one.Target, false
	t.GroupVersionResource, served = a.Kinds.Served(t.GroupVersionResource)
	if served {
		done, err = a.deleteOrOrphanVersion(ctx, owner, t, one.UID, stays)
	}
	if !served || apply.IsNotServed(err) {
		// The discovery results are stale, or lack those of a server that did not respond.
		a.Kinds.Changed()
		version, failed := a.Kinds.Live(ctx, one.GroupVersionResource)
		if failed != nil {
			return false, failed
		}
		if version == "" {
			return true, nil // an object is deleted with its resource
		}
		done, err = false, nil
		if !served || version != t.Version {
			t.Version = version
			done, err = a.deleteOrOrphanVersion(ctx, owner, t, one.UID, stays)
		}
		if apply.IsNotServed(err) {
			err = nil // the resource is being added or removed
		}
	}
	if err == nil && !done && a.isKnown(work) {
		a.Drift.Watch(a.life, work, t, "")
	}
	return done, err
}

// deleteOrOrphanVersion deletes an object in a version that the cluster serves, or orphans one that stays.
func (a *Agent) deleteOrOrphanVersion(ctx context.Context, owner apply.Owner, t apply.Target, uid types.UID, stays bool) (done bool, err error) {
	if stays {
		err = owner.Release(ctx, a.Cluster, t)
		done = err == nil
	} else {
		done, err = owner.Delete(ctx, a.Cluster, t, uid)
	}
	if a.isHidden(ctx, t, uid, err) {
		return true, nil
	}
	return done, err
}

// isHidden reports whether the agent has no right to get an object that it never observed, because it has no rights for the manifest. The record is
// written first, and so it names the object; without this check, such a work could not be deleted. If the object exists with the owner reference of
// the record, the cluster's garbage collector deletes it after the record.
func (a *Agent) isHidden(ctx context.Context, t apply.Target, uid types.UID, err error) bool {
	if uid != "" || !apierrors.IsForbidden(err) {
		return false
	}
	_, err = apply.Get(ctx, a.Cluster, t)
	return apierrors.IsForbidden(err)
}

// removeAll deletes the objects of a record that is being deleted, step by step, and returns descriptions of those that are left. Objects of a
// resource that is no longer served were deleted with it; if they come back, their owner does not exist, and the cluster's garbage collector deletes
// them.
func (a *Agent) removeAll(ctx context.Context, record *memory.Record) (left []string, failed error) {
	d := a.deletionOf(record)
	later := len(record.Resources)
	for step, indices := range stepsOf(record.Resources) {
		later -= len(indices)
		before := len(left)
		for _, i := range indices {
			why, err := a.remove(ctx, d, record, record.Resources[i])
			failed = errors.Join(failed, err)
			if why != "" {
				left = append(left, why)
			}
		}
		switch {
		case len(left) == before:
		case d.holds(step, time.Now()):
			if later > 0 {
				left = append(left, fmt.Sprintf("%d objects that are deleted after that", later))
			}
			return left, failed
		default:
			left[before] += fmt.Sprintf(" for more than %s, so that others are deleted without it", d.timeout)
		}
	}
	return left, failed
}

// remove deletes one object of a record, and returns what it waits for; empty if the object is gone. An object that is gone is not checked again:
// once the definition of its kind is gone too, only discovery could tell, which may be stale.
func (a *Agent) remove(ctx context.Context, d *deletion, record *memory.Record, one memory.AppliedResource) (why string, err error) {
	if d.isGone(one.Target) {
		return "", nil
	}
	gone, err := a.deleteOrOrphan(ctx, record.Work, record.Owner, one, a.stays(nil, one.Target))
	switch {
	case err != nil:
		err = fmt.Errorf("deleting %s: %w", one.Target, err)
		why = err.Error()
		if apierrors.IsForbidden(err) {
			why += " (grant the agent the right to delete the object, or orphan the object by spec.deleteOption of the work)"
		}
	case gone:
		d.setGone(one.Target)
	default:
		why = fmt.Sprintf("the deletion of %s", one.Target)
	}
	return why, err
}

// deletionOf returns the state of the deletion of a record's objects.
func (a *Agent) deletionOf(record *memory.Record) *deletion {
	a.mu.Lock()
	defer a.mu.Unlock()
	d := a.deletions[record.Owner.UID]
	if d == nil {
		d = &deletion{timeout: a.stepTimeout}
		a.deletions[record.Owner.UID] = d
	}
	return d
}

// forgetDeletions removes the state of all deletions except those of the given records.
func (a *Agent) forgetDeletions(but []*memory.Record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.deletions, func(uid types.UID, _ *deletion) bool {
		return !slices.ContainsFunc(but, func(r *memory.Record) bool { return r.Owner.UID == uid })
	})
}

// evict deletes the objects of works that have been missing on the hub for longer than the grace period, and those of works of a former address of
// the hub. It ignores the records of other agents.
func (a *Agent) evict(ctx context.Context) (failed error) {
	records, err := a.Memory.List(ctx)
	if err != nil {
		return err
	}
	a.forgetDeletions(records)
	for _, record := range records {
		if err := a.evictOne(ctx, record); err != nil && !isStale(err) {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", record.Owner.Name, err))
		}
	}
	return failed
}

func (a *Agent) evictOne(ctx context.Context, record *memory.Record) error {
	missing, err := a.isMissing(ctx, record)
	switch {
	case err != nil:
		return err
	case !missing && record.HubHash == a.HubHash:
		return nil // the worker of the work writes the record
	case a.Grace >= never && !record.Deleting:
		return a.Memory.Evict(ctx, record, nil)
	case !record.Deleting && record.Evicting == nil:
		now := time.Now()
		return a.Memory.Evict(ctx, record, &now)
	case !record.Deleting && time.Since(*record.Evicting) < a.Grace:
		return nil
	}
	if err := a.Memory.StartDeletion(ctx, record); err != nil {
		return err
	}
	left, err := a.removeAll(ctx, record)
	if err != nil || len(left) > 0 {
		return err
	}
	return a.Memory.CompleteDeletion(ctx, record)
}

// isMissing reports whether the hub has no work for a record. It requests the work from the hub, since the cache may be stale.
func (a *Agent) isMissing(ctx context.Context, record *memory.Record) (bool, error) {
	if record.HubHash != a.HubHash {
		return true, nil
	}
	if work, err := a.cached(record.Work); err != nil || work != nil {
		return false, err
	}
	_, err := a.hub.Get(ctx, record.Work, metav1.GetOptions{})
	if apply.IsGone(err) {
		return true, nil
	}
	return false, err
}
