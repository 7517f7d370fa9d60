// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterhub/clusterhub/pkg/agent/repeat"
	"github.com/clusterhub/clusterhub/pkg/agent/work/apply"
	"github.com/clusterhub/clusterhub/pkg/agent/work/executor"
	"github.com/clusterhub/clusterhub/pkg/agent/work/kinds"
	"github.com/clusterhub/clusterhub/pkg/agent/work/memory"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/work/order"
	"github.com/clusterhub/clusterhub/pkg/work/status"
)

// applyResult is the outcome of the last attempt to apply a manifest.
type applyResult struct {
	// hash is the hash of the desired object, and rules that of the rules for its status.
	hash, rules string
	owner       apply.Owner
	err         error
	// seen is the part of the status about the object after the attempt.
	seen *status.Seen
	// version and uid are those of the object in the cluster.
	version string
	uid     types.UID
	// applied is the fingerprint of the object after the last success; empty if the current manifest has not been applied yet.
	applied string
	// at is the time of the last attempt, and next the time of the next one after a failure.
	at, next time.Time
	// unjudged is when rules whose evaluation was delayed are evaluated; zero if they were evaluated.
	unjudged time.Time
	waits    repeat.Backoff
	repairs  repairs
	// differs is whether the object differs from applied, and stays so until a repair is due.
	differs bool
	// awaits is the namespace that the object lacks, and observed is its resource version at the last attempt.
	awaits   apply.Target
	observed string
	// replaced is why the object is replaced instead of applied; nil if it is applied.
	replaced error
	// adoption is whether the object existed before the work, as far as this process knows.
	adoption status.Adoption
}

// adoptions maps how the work acquired an object to what its status reports.
var adoptions = map[apply.Acquisition]status.Adoption{
	apply.Created: status.Created, apply.Adopted: status.Adopted, apply.AdoptedToStay: status.AdoptedToStay}

// isStale reports whether an object changed after it was read, so that it must be read again.
func isStale(err error) bool { return apierrors.IsConflict(err) }

// sync applies the manifests of a work, prunes objects that are no longer listed, and writes the status. It returns the delay before the next sync of
// the work.
func (a *Agent) sync(ctx context.Context, work *workv1.ManifestWork) (again time.Duration, err error) {
	if !slices.Contains(work.Finalizers, workv1.ManifestWorkFinalizer) {
		a.state(work).isNew = true
		if err := a.hub.setFinalizers(ctx, work, append(work.Finalizers, workv1.ManifestWorkFinalizer)); err != nil {
			return 0, err
		}
	}
	s := a.state(work)
	items := a.plan(work)
	a.claims.set(work, items)
	if status.Done(work.Status.Conditions, work.Generation) {
		s.recordHashes(work, items)
		return 0, nil
	}
	again = resync
	record, kept := a.record(ctx, work, s)
	if kept == nil && record.Deleting {
		// Another client deleted the record, and the objects that belong to it. A new record is created once the old one is gone.
		left, err := a.removeAll(ctx, record)
		if err != nil || len(left) > 0 {
			return s.waits.Next(), err
		}
		s.record = nil
		// This takes longer if another client has set a finalizer on the record.
		return s.waits.Next(), a.Memory.CompleteDeletion(ctx, record)
	}
	if kept == nil {
		for _, one := range items {
			_, known := record.UID(one.manifest.Target)
			// Namespaced objects are read before they are created: with its role for labels, an agent may create namespaces, which works that have a
			// list of namespaces may not.
			one.manifest.Unseen = !known && s.manifests[one.manifest.Target] == nil && one.manifest.Namespace != ""
		}
		kept = a.Memory.SetResources(ctx, record, intended(record, items))
	}
	if isStale(kept) {
		s.record = nil
		return 0, kept
	}
	if s.generation != work.Generation {
		// A user who changes the spec waits for the result.
		for _, last := range s.manifests {
			last.next = time.Time{}
			last.waits.Reset()
		}
		s.generation = work.Generation
	}
	if kept != nil {
		// An object that cannot be recorded is not created.
		kept = fmt.Errorf("the agent cannot keep its record of this work: %w", kept)
		for _, one := range items {
			if one.refused == nil {
				one.refused = kept
			}
		}
		again = maxRetry / 10
	}
	again = min(again, a.applyAll(ctx, work, s, items))
	var failed error
	if kept == nil {
		var left bool
		// A failure to prune does not delay the status of the other objects.
		left, failed = a.recordAndPrune(ctx, work, s, items)
		if isStale(failed) {
			return 0, failed
		}
		if left {
			again = min(again, s.waits.Next())
		} else {
			s.waits.Reset()
		}
	}
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	later, err := a.hub.report(ctx, work, s, items)
	if later > 0 {
		again = min(again, later)
	}
	return repeat.Jittered(again, a.Random), errors.Join(failed, err)
}

// recordHashes records the hashes of the desired objects of a work that is complete, so that later edits can be detected.
func (s *state) recordHashes(work *workv1.ManifestWork, items []*item) {
	for _, one := range items {
		if one.target && one.refused == nil {
			s.of(one).hash = one.hash(work)
		}
	}
}

// record returns the record of a work. It reads the record again if it may have changed.
func (a *Agent) record(ctx context.Context, work *workv1.ManifestWork, s *state) (*memory.Record, error) {
	if r := s.record; r != nil && a.Drift.Fresh(r.Owner.Target(), r.Version()) {
		return r, nil
	}
	s.record = nil
	defer func() { s.isNew = false }()
	r, err := a.Memory.Ensure(ctx, work.Name, work.Labels, s.isNew)
	if err != nil {
		return nil, err
	}
	if err := a.Memory.Evict(ctx, r, nil); err != nil {
		return nil, err
	}
	s.record = r
	a.Drift.Watch(a.life, work.Name, r.Owner.Target(), r.Version())
	return r, nil
}

// intended returns the resources to record before any object is created: all that were recorded, and all that may be created.
func intended(record *memory.Record, items []*item) []memory.AppliedResource {
	resources := slices.Clone(record.Resources)
	for _, one := range items {
		if !one.target || one.refused != nil || one.manifest.Strategy.Type == apply.ReadOnly {
			continue
		}
		if _, known := record.UID(one.manifest.Target); !known {
			resources = append(resources, memory.AppliedResource{Target: one.manifest.Target})
		}
	}
	return resources
}

// applyAll applies the manifests in order, and returns the delay until the next attempt. A failure of one does not block the others.
func (a *Agent) applyAll(ctx context.Context, work *workv1.ManifestWork, s *state, items []*item) (again time.Duration) {
	objects := make([]*unstructured.Unstructured, len(items))
	for i, one := range items {
		objects[i] = one.object()
	}
	again = resync
	missing := false
	for _, i := range order.Apply(objects) {
		one := items[i]
		if one.refused != nil {
			if unknown := (*kinds.Unknown)(nil); errors.As(one.refused, &unknown) {
				missing = true
			}
			continue
		}
		last := s.of(one)
		a.applyOne(ctx, work, s, one, last)
		if last.err != nil {
			again = min(again, max(time.Until(last.next), time.Millisecond))
		}
		if !last.unjudged.IsZero() {
			again = min(again, max(time.Until(last.unjudged), time.Millisecond))
		}
		if last.differs {
			again = min(again, max(last.repairs.wait(time.Now()), time.Millisecond))
		}
	}
	a.setLacking(work.Name, missing)
	if !missing {
		s.kinds.Reset()
		return again
	}
	return min(again, s.kinds.Next())
}

// applyOne applies one manifest, unless its object is known to be as desired, or the last attempt failed and its retry is not due yet.
func (a *Agent) applyOne(ctx context.Context, work *workv1.ManifestWork, s *state, one *item, last *applyResult) {
	hash, rules, target := one.hash(work), one.rulesHash(), one.manifest.Target
	if before := status.Find(&work.Status, &one.meta); before != nil {
		one.manifest.Reported = status.AppliedAt(before.Conditions, work.Generation)
		one.frozen = status.Frozen(before.Conditions, one.config.ConditionRules, last.hash == "" || last.hash == hash)
	}
	if hash != last.hash || last.owner != s.record.Owner {
		last.applied, last.next, last.replaced = "", time.Time{}, nil
		last.repairs.reset()
	} else if last.differs && last.repairs.wait(time.Now()) == 0 {
	} else if rules != last.rules || !last.unjudged.IsZero() && !time.Now().Before(last.unjudged) {
	} else if last.err != nil && time.Now().Before(last.next) && a.Drift.Observed(last.awaits) == last.observed || last.err == nil && a.isFresh(work, target, last) {
		return
	}
	held := last.applied != "" && last.repairs.wait(time.Now()) > 0
	have, err := a.apply(ctx, work, s, one, last, held)
	var seen *status.Seen
	var wait time.Duration
	switch {
	case have == nil && err != nil:
		seen = a.observe(ctx, work, one)
	case have == nil:
		seen = statusOfMissing(target)
	case err == nil || s.record.Owner.Owns(have):
		var ended error
		seen, wait, ended = a.evaluator.evaluate(ctx, work.Name, one, have)
		if ended != nil {
			return
		}
	default:
		// The object exists, and a work learns no more of an object that it does not own.
		seen = &status.Seen{}
	}
	if ctx.Err() != nil {
		return
	}
	last.hash, last.rules, last.owner, last.err, last.at, last.seen = hash, rules, s.record.Owner, err, time.Now(), seen
	last.unjudged = time.Time{}
	if wait > 0 {
		last.unjudged = last.at.Add(wait)
	}
	last.version, last.uid, last.differs = "", "", false
	fingerprint := ""
	if have != nil {
		last.version, fingerprint = have.GetResourceVersion(), apply.Fingerprint(have)
		// An object that is not owned is recorded without its UID: with it, the next attempt would take the object for the work's own.
		// The UID of an orphaned Namespace is recorded only if the work created it: the deletion policy may change later.
		stays := one.manifest.Orphaned && (last.adoption == status.Created || target.GroupResource() != apply.Namespaces || target.Immortal())
		if s.record.Owner.Owns(have) || err == nil && stays {
			last.uid = have.GetUID()
		}
	}
	switch {
	case held:
		last.differs = err == nil && fingerprint != last.applied
	case err == nil:
		last.applied = fingerprint
	}
	if err == nil {
		last.waits.Reset()
	} else if denied := (*executor.Denied)(nil); errors.As(err, &denied) {
		last.next = time.Now().Add(executor.Again)
	} else {
		last.next = time.Now().Add(last.waits.Next())
	}
	last.awaits, last.observed = apply.Target{}, ""
	if apply.LacksNamespace(err) && a.Only == "" {
		last.awaits = apply.Target{GroupVersionResource: corev1.SchemeGroupVersion.WithResource(apply.Namespaces.Resource), Name: target.Namespace}
		a.Drift.Watch(a.life, work.Name, last.awaits, "")
		last.observed = a.Drift.Observed(last.awaits)
	}
	if apply.IsNotServed(err) {
		a.Kinds.Changed()
	}
	if err == nil && target.GroupResource().String() == customResourceDefinitions {
		a.refreshKinds()
	}
	a.Drift.Watch(a.life, work.Name, target, last.version)
	a.Drift.Seen(target, last.version)
}

// isFresh reports whether an object is known to be unchanged. The rights of an account may change without an event, so that works with an executor
// are checked periodically.
func (a *Agent) isFresh(work *workv1.ManifestWork, t apply.Target, last *applyResult) bool {
	return a.Drift.Fresh(t, last.version) && (work.Spec.Executor == nil || time.Since(last.at) < resync*3/4)
}

// apply applies one manifest with the rights of the work's executor. If the object is held because it was repaired too often, it is only read.
func (a *Agent) apply(
	ctx context.Context, work *workv1.ManifestWork, s *state, one *item, last *applyResult, held bool,
) (*unstructured.Unstructured, error) {
	manifest := one.manifest
	if one.frozen || held {
		manifest.Strategy.Type = apply.ReadOnly
	}
	way, err := a.accessFor(ctx, work, one)
	if err != nil {
		return nil, err
	}
	applier := &apply.Applier{Client: way.Client, OnlyByName: way.OnlyByName, Owner: s.record.Owner, Rival: a.Memory.OtherOwner,
		Making:   func(ctx context.Context, t apply.Target) error { return a.recordCreation(ctx, s, t) },
		Acquired: func(how apply.Acquisition) { last.adoption = adoptions[how] },
		Replaced: func(why error) { last.replaced = why },
		Claimed:  func(t apply.Target) string { return a.claims.before(work.Name, t) }}
	manifest.Known, _ = s.record.UID(manifest.Target)
	fingerprint := last.applied
	if last.applied != "" { // a write of an object that was as desired is a repair
		applier.Changed = func(before, after *unstructured.Unstructured) {
			last.repairs.add(time.Now(), apply.RepairOf(before, after))
		}
	}
	if last.err != nil {
		fingerprint = "" // it is applied again in any case
	}
	return applier.Apply(ctx, manifest, fingerprint)
}

// recordCreation records that an object is about to be created again: the known UID belongs to a previous object.
func (a *Agent) recordCreation(ctx context.Context, s *state, t apply.Target) error {
	if uid, known := s.record.UID(t); known && uid == "" {
		return nil
	}
	resources := slices.DeleteFunc(slices.Clone(s.record.Resources), func(r memory.AppliedResource) bool { return r.Is(t) })
	return a.Memory.SetResources(ctx, s.record, append(resources, memory.AppliedResource{Target: t}))
}

// observe returns whether an object exists that could not be applied. If the executor does not have the right to get it, this is not revealed.
func (a *Agent) observe(ctx context.Context, work *workv1.ManifestWork, one *item) *status.Seen {
	reading := *one
	reading.manifest.Strategy.Type = apply.ReadOnly
	way, err := a.accessFor(ctx, work, &reading)
	if err != nil {
		return &status.Seen{Err: err}
	}
	have, err := apply.Get(ctx, way.Client, one.manifest.Target)
	if have == nil && err == nil {
		return statusOfMissing(one.manifest.Target)
	}
	return &status.Seen{Err: err}
}

// accessFor returns the way to access the cluster with the rights of a work's executor, or with those of the agent if the work has no executor.
func (a *Agent) accessFor(ctx context.Context, work *workv1.ManifestWork, one *item) (executor.AccountClient, error) {
	by, access := work.Spec.Executor, executor.Access{Manifest: one.manifest, Delete: !one.manifest.Orphaned}
	if by == nil {
		return executor.AccountClient{Client: a.Cluster}, a.Executors.Self(ctx, access)
	}
	if by.Subject.Type != workv1.ExecutorSubjectTypeServiceAccount || by.Subject.ServiceAccount == nil {
		return executor.AccountClient{}, fmt.Errorf("the executor must be a %s, not %q", workv1.ExecutorSubjectTypeServiceAccount, by.Subject.Type)
	}
	return a.Executors.For(ctx, by.Subject.ServiceAccount, access)
}
