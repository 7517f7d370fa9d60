// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package visibility decides which objects of a derived resource a user sees: those of the sets that the user may get, by the RBAC rules that are in
// effect at the version at which the objects are read. In other packages, access refers to AccessRequests.
//
// Rules follows the RBAC rules and orders their changes with those of the objects, history records which rules are in effect when, and Reader reads
// objects as one user sees them.
package visibility

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/klog/v2"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/visibility"
	"github.com/clusterhub/clusterhub/pkg/rbac"
	"github.com/clusterhub/clusterhub/pkg/registry/view/position"
)

const (
	revisions   = position.FleetPrefix + "/" + visibility.Resource
	revisionKey = revisions + "/" + visibility.Name

	// catchUp is the maximum time that the stream of members waits for this replica to observe the rules that another replica observed.
	catchUp = 250 * time.Millisecond
)

// Rules has the sets and clusters that a user may get, at any retained version of the members. The RBAC rules are in the front's etcd; to order their
// changes with those of the members, the replica that first observes a change writes a visibility revision to our etcd, and all replicas put the
// change into effect at that revision.
type Rules struct {
	// history has the rules of sets, and clusters the rules of clusters, by name and by set. They are separate, so that a change of one is no change
	// of the other.
	history, clusters *history

	store   storage.Interface
	destroy func()
	front   rbacclient.RbacV1Interface
	// frontAt returns the current versions of the front's cluster roles and bindings.
	frontAt func(context.Context) (roles, bindings uint64, err error)

	mu sync.Mutex
	// sets has who may get which sets, names and clusterSets who may get which clusters.
	sets, names, clusterSets *rbac.Index
	// roles and bindings are the progress of this replica with the two kinds.
	roles, bindings progress
	// stateRoles and stateBindings are its progress at the latest state in the history.
	stateRoles, stateBindings progress
	// proposed and proposedClusters are the digests that this replica wrote last: they are not written again when others disagree.
	proposed, proposedClusters string

	// dirty wakes Run.
	dirty chan struct{}
	// behindSince is the time since when this replica yields. Only Run's goroutine uses it.
	behindSince time.Time
}

// NewRules returns the rules of a front. Visibility revisions are stored in the fleet. Run must be called to follow the rules. agents are prefixes of
// the names of users and groups that are shown no clusters: each of them may have a role of its own, and a new one would be a change of what users
// see.
func NewRules(fleet *storagebackend.ConfigForResource, front rbacclient.RbacV1Interface, agents ...string) (*Rules, error) {
	// This storage is rarely written. It is created by factory.Create, and so compacts etcd for all.
	store, destroy, err := generic.NewRawStorage(fleet,
		func() runtime.Object { return &visibility.Revision{} },
		func() runtime.Object { return &visibility.RevisionList{} }, revisions)
	if err != nil {
		return nil, err
	}
	rules := newRules(store, front, agents...)
	rules.destroy = sync.OnceFunc(destroy)
	return rules, nil
}

func newRules(store storage.Interface, front rbacclient.RbacV1Interface, agents ...string) *Rules {
	index := func(resource, subresource string, ignored ...string) *rbac.Index {
		return rbac.NewIndex(rbac.Attributes{
			Verb: "get", Group: cluster.GroupName, Resource: resource, Subresource: subresource, Ignored: ignored,
		})
	}
	return &Rules{
		history:     newHistory(),
		clusters:    newHistory(),
		store:       store,
		front:       front,
		frontAt:     frontAt(front),
		sets:        index("managedclustersets", ""),
		names:       index("managedclusters", "", agents...),
		clusterSets: index("managedclustersets", "clusters", agents...),
		dirty:       make(chan struct{}, 1),
	}
}

// change changes all indexes, and reports whether one of them changed.
func (r *Rules) change(f func(*rbac.Index) bool) (changed bool) {
	for _, index := range []*rbac.Index{r.sets, r.names, r.clusterSets} {
		changed = f(index) || changed
	}
	return changed
}

// Run follows the rules until the context ends.
func (r *Rules) Run(ctx context.Context) {
	r.followRules(ctx)
	wait.UntilWithContext(ctx, r.propose, time.Second)
}

// Destroy closes the storage of the revisions. It may be called by each user of the rules.
func (r *Rules) Destroy() { r.destroy() }

// Latest returns the newest state of who may get which sets that this replica has reached, whether or not it is in effect. It is nil until all rules
// have been read.
func (r *Rules) Latest() *rbac.Snapshot {
	if latest := r.history.latest(); latest != nil {
		return latest.sets
	}
	return nil
}

// wake makes Run check the rules again.
func (r *Rules) wake() {
	select {
	case r.dirty <- struct{}{}:
	default:
	}
}

// learn adds the current state of the rules to the history.
func (r *Rules) learn() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.roles.listed || !r.bindings.listed {
		return
	}
	r.stateRoles, r.stateBindings = r.roles, r.bindings
	r.history.learn(&ruling{sets: r.sets.Snapshot()})
	r.clusters.learn(&ruling{sets: r.clusterSets.Snapshot(), names: r.names.Snapshot()})
}

// OfSets returns an observer of changes of the rules of sets.
func (r *Rules) OfSets() Observer { return Observer{r, r.history, &r.proposed} }

// OfClusters returns an observer of changes of the rules of clusters.
func (r *Rules) OfClusters() Observer { return Observer{r, r.clusters, &r.proposedClusters} }

// Observer puts changes of the rules into effect when the watch of a derived resource reaches them.
type Observer struct {
	rules    *Rules
	history  *history
	proposed *string
}

// Reset implements derived.Observer.
func (o Observer) Reset(version uint64, digest string) {
	o.history.reset(version, digest)
	if latest := o.history.latest(); latest != nil && latest.Hash() != digest {
		// There may have been no reader until now.
		o.disagree(digest)
		o.rules.wake()
	}
}

// disagree records that a state is in effect that this replica did not write. If it observes its own state again later, that is a change.
func (o Observer) disagree(digest string) {
	o.rules.mu.Lock()
	defer o.rules.mu.Unlock()
	if digest != *o.proposed {
		*o.proposed = ""
	}
}

// Observe implements derived.Observer.
func (o Observer) Observe(ctx context.Context, version uint64, digest string) {
	timeout := time.NewTimer(catchUp)
	defer timeout.Stop()
	for waited := false; ; {
		// Run may be blocked by a write, although the rules have arrived.
		o.rules.learn()
		o.disagree(digest)
		state, changed := o.history.lookup(digest)
		if state != nil || waited {
			break
		}
		select {
		case <-changed:
		case <-timeout.C:
			waited = true
		case <-ctx.Done():
			waited = true
		}
	}
	rules := o.history.enter(version, digest)
	if rules == nil {
		klog.InfoS("The RBAC rules that another replica sees have not arrived here; what they make visible is withheld until they arrive", "version", version)
	}
	if rules != o.history.latest() {
		// This replica may have observed more, and will write it. Rules that have not arrived may never arrive, if the replica that wrote the
		// revision is gone.
		o.rules.wake()
	}
}
