// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestworkreplicaset

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/work"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	workv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/rollout"
)

// entry is the known state of a work. It is immutable: a new one replaces it.
type entry struct {
	work        *workv1.ManifestWork
	owner       string
	placement   string
	observation rollout.Observation
	summary     workv1alpha1.ManifestWorkReplicaSetSummary
	// unapplied reports that the agent could not apply the current version.
	unapplied bool
	// unseen is the time of the write, if no watch has reported it yet.
	unseen time.Time
}

func (e *entry) cluster() string { return e.work.Namespace }

func (e *entry) leaving() bool { return !e.work.DeletionTimestamp.IsZero() }

func (e *entry) digest() string { return e.work.Annotations[digestAnnotation] }

func (e *entry) time(annotation string) time.Time {
	t, err := time.Parse(time.RFC3339, e.work.Annotations[annotation])
	if err != nil {
		return time.Time{}
	}
	return t
}

// newEntry returns the entry of a work of the cache.
func newEntry(w *workv1.ManifestWork) *entry {
	e := &entry{work: w, owner: ownerFrom(w.Labels), placement: w.Labels[work.PlacementLabel], observation: observe(w)}
	if e.leaving() {
		return e
	}
	e.summary.Total = 1
	if c := meta.FindStatusCondition(w.Status.Conditions, workv1.WorkApplied); c != nil {
		e.unapplied = c.Status == metav1.ConditionFalse && c.ObservedGeneration == w.Generation
	}
	for condition, count := range map[string]*int{
		workv1.WorkApplied: &e.summary.Applied, workv1.WorkAvailable: &e.summary.Available,
		workv1.WorkProgressing: &e.summary.Progressing, workv1.WorkDegraded: &e.summary.Degraded,
	} {
		if c := meta.FindStatusCondition(w.Status.Conditions, condition); c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == w.Generation {
			*count = 1
		}
	}
	return e
}

// workIndex has the works of all sets, by set, and the sets by placement. The cost of a change of a work does not depend on the size of the hub.
type workIndex struct {
	mu sync.Mutex
	// works are by owner, and then by name.
	works map[string]map[types.NamespacedName]*entry
	// counts are the counts of the works of an owner, by placement.
	counts map[string]map[string]workv1alpha1.ManifestWorkReplicaSetSummary
	// owners are the owners of works.
	owners map[types.NamespacedName]string
	// sets are by owner hash; byPlacement has the sets that name a placement.
	sets        map[string]types.NamespacedName
	placements  map[types.NamespacedName][]string
	byPlacement map[types.NamespacedName]map[types.NamespacedName]bool
}

func newIndex() *workIndex {
	return &workIndex{
		works: map[string]map[types.NamespacedName]*entry{}, counts: map[string]map[string]workv1alpha1.ManifestWorkReplicaSetSummary{},
		owners: map[types.NamespacedName]string{}, sets: map[string]types.NamespacedName{}, placements: map[types.NamespacedName][]string{},
		byPlacement: map[types.NamespacedName]map[types.NamespacedName]bool{},
	}
}

// set stores a work, and returns the sets that it concerns. learned is the time of the write, if no watch has reported it yet.
func (x *workIndex) set(w *workv1.ManifestWork, learned time.Time) (concerns []types.NamespacedName) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.put(w, learned)
}

// setDeleted stores a work that is being deleted, unless a watch has reported already that it is gone.
func (x *workIndex) setDeleted(w *workv1.ManifestWork, learned time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e := x.entry(client.ObjectKeyFromObject(w)); e != nil && e.work.UID == w.UID {
		x.put(w, learned)
	}
}

func (x *workIndex) put(w *workv1.ManifestWork, learned time.Time) (concerns []types.NamespacedName) {
	key := client.ObjectKeyFromObject(w)
	if before := x.entry(key); before != nil && before.work.UID == w.UID && kit.CompareVersions(w.ResourceVersion, before.work.ResourceVersion) < 0 {
		return nil
	}
	concerns = x.remove(key)
	e := newEntry(w)
	e.unseen = learned
	if e.owner == "" {
		return concerns
	}
	if x.works[e.owner] == nil {
		x.works[e.owner], x.counts[e.owner] = map[types.NamespacedName]*entry{}, map[string]workv1alpha1.ManifestWorkReplicaSetSummary{}
	}
	x.works[e.owner][key], x.owners[key] = e, e.owner
	x.count(e, 1)
	if set, known := x.sets[e.owner]; known && !slices.Contains(concerns, set) {
		concerns = append(concerns, set)
	}
	return concerns
}

// delete removes a work, unless a different one has the name.
func (x *workIndex) delete(key types.NamespacedName, uid types.UID) []types.NamespacedName {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e := x.entry(key); e == nil || e.work.UID != uid {
		return nil
	}
	return x.remove(key)
}

func (x *workIndex) entry(key types.NamespacedName) *entry { return x.works[x.owners[key]][key] }

func (x *workIndex) remove(key types.NamespacedName) (concerns []types.NamespacedName) {
	e := x.entry(key)
	if e == nil {
		return nil
	}
	x.count(e, -1)
	delete(x.owners, key)
	delete(x.works[e.owner], key)
	if len(x.works[e.owner]) == 0 {
		delete(x.works, e.owner)
		delete(x.counts, e.owner)
	}
	if set, known := x.sets[e.owner]; known {
		concerns = append(concerns, set)
	}
	return concerns
}

func (x *workIndex) count(e *entry, by int) {
	all := x.counts[e.owner]
	c := all[e.placement]
	add(&c, e.summary, by)
	all[e.placement] = c
}

func add(to *workv1alpha1.ManifestWorkReplicaSetSummary, s workv1alpha1.ManifestWorkReplicaSetSummary, by int) {
	to.Total += by * s.Total
	to.Applied += by * s.Applied
	to.Available += by * s.Available
	to.Progressing += by * s.Progressing
	to.Degraded += by * s.Degraded
	to.DesiredTotal += by * s.DesiredTotal
	to.Updated += by * s.Updated
}

// of returns the works of a set.
func (x *workIndex) of(set types.NamespacedName) []*entry {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Collect(maps.Values(x.works[owner(set)]))
}

// countsOf returns the counts of the works of a set, by placement.
func (x *workIndex) countsOf(set types.NamespacedName) map[string]workv1alpha1.ManifestWorkReplicaSetSummary {
	x.mu.Lock()
	defer x.mu.Unlock()
	return maps.Clone(x.counts[owner(set)])
}

// unseenSince returns the works of a set that were written at the given time or before, and whose write no watch has reported.
func (x *workIndex) unseenSince(set types.NamespacedName, at time.Time) (works []*entry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, e := range x.works[owner(set)] {
		if !e.unseen.IsZero() && !e.unseen.After(at) {
			works = append(works, e)
		}
	}
	return works
}

// setReplicaSet stores a set with the placements that it names.
func (x *workIndex) setReplicaSet(key types.NamespacedName, placements []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.forget(key)
	x.sets[owner(key)], x.placements[key] = key, placements
	for _, p := range placements {
		placement := types.NamespacedName{Namespace: key.Namespace, Name: p}
		if x.byPlacement[placement] == nil {
			x.byPlacement[placement] = map[types.NamespacedName]bool{}
		}
		x.byPlacement[placement][key] = true
	}
}

func (x *workIndex) deleteReplicaSet(key types.NamespacedName) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.forget(key)
}

func (x *workIndex) forget(key types.NamespacedName) {
	for _, p := range x.placements[key] {
		placement := types.NamespacedName{Namespace: key.Namespace, Name: p}
		delete(x.byPlacement[placement], key)
		if len(x.byPlacement[placement]) == 0 {
			delete(x.byPlacement, placement)
		}
	}
	delete(x.placements, key)
	delete(x.sets, owner(key))
}

// setsOf returns the sets that name a placement.
func (x *workIndex) setsOf(placement types.NamespacedName) []types.NamespacedName {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.SortedFunc(maps.Keys(x.byPlacement[placement]), func(a, b types.NamespacedName) int { return cmp.Compare(a.Name, b.Name) })
}
