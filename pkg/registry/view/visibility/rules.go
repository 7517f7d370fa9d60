// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package visibility decides which objects of a derived resource a user sees: those of the sets that the user may get, by the
// RBAC rules that hold at the version at which the objects are read. Access, in other packages, is that of AccessRequests.
//
// Rules follows the RBAC rules and orders their changes with those of the objects, history keeps which rules hold when,
// and Reader reads objects as one user sees them.
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

	// catchUp is how long the stream of members waits for this replica to see the rules that another replica saw.
	catchUp = 250 * time.Millisecond
)

// Rules knows which sets a user may get, at any version of the members that is still kept. The RBAC rules live in the
// front's etcd; to order their changes with those of the members, the replica that first sees a change writes a
// visibility revision to our etcd, and all replicas let the change take effect at that revision.
type Rules struct {
	history *history
	store   storage.Interface
	destroy func()
	front   rbacclient.RbacV1Interface
	// frontAt returns the versions that the front's cluster roles and bindings are at.
	frontAt func(context.Context) (roles, bindings uint64, err error)

	mu    sync.Mutex
	index *rbac.Index
	// roles and bindings are how far this replica has followed the two kinds.
	roles, bindings progress
	// stateRoles and stateBindings are how far it had at the latest state that the history knows.
	stateRoles, stateBindings progress
	// proposed is the digest that this replica has written last: it is not written again when others disagree.
	proposed string

	// dirty wakes Run.
	dirty chan struct{}
	// behindSince is since when this replica yields. Only Run's goroutine uses it.
	behindSince time.Time
}

// NewRules makes the rules of a front. Visibility revisions are stored in the fleet. Run has to be called to follow the
// rules.
func NewRules(fleet *storagebackend.ConfigForResource, front rbacclient.RbacV1Interface) (*Rules, error) {
	// This storage is written to seldom. It is the one that factory.Create makes, and so compacts etcd for all.
	store, destroy, err := generic.NewRawStorage(fleet,
		func() runtime.Object { return &visibility.Revision{} },
		func() runtime.Object { return &visibility.RevisionList{} }, revisions)
	if err != nil {
		return nil, err
	}
	rules := newRules(store, front)
	rules.destroy = sync.OnceFunc(destroy)
	return rules, nil
}

func newRules(store storage.Interface, front rbacclient.RbacV1Interface) *Rules {
	return &Rules{
		history: newHistory(),
		store:   store,
		front:   front,
		frontAt: frontAt(front),
		index: rbac.NewIndex(rbac.Attributes{
			Verb: "get", Group: cluster.GroupName, Resource: "managedclustersets",
		}),
		dirty: make(chan struct{}, 1),
	}
}

// Run follows the rules until the context ends.
func (r *Rules) Run(ctx context.Context) {
	r.followRules(ctx)
	wait.UntilWithContext(ctx, r.propose, time.Second)
}

// Destroy closes the storage of the revisions. It may be called by each who has the rules.
func (r *Rules) Destroy() { r.destroy() }

// Latest is the newest state that this replica has come to, whether or not it holds. It is nil until all rules are here.
func (r *Rules) Latest() *rbac.Snapshot { return r.history.latest() }

// wake makes Run look at the rules again.
func (r *Rules) wake() {
	select {
	case r.dirty <- struct{}{}:
	default:
	}
}

// learn remembers the state of the rules that this replica has come to.
func (r *Rules) learn() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.roles.listed || !r.bindings.listed {
		return
	}
	r.stateRoles, r.stateBindings = r.roles, r.bindings
	r.history.learn(r.index.Snapshot())
}

// Reset implements derived.Observer.
func (r *Rules) Reset(version uint64, digest string) { r.history.reset(version, digest) }

// Observe implements derived.Observer.
func (r *Rules) Observe(ctx context.Context, version uint64, digest string) {
	timeout := time.NewTimer(catchUp)
	defer timeout.Stop()
	for waited := false; ; {
		// Run may be held up by a write, with the rules long here.
		r.learn()
		r.mu.Lock()
		if digest != r.proposed {
			// Another state counts now. Should this replica come to see its own again, that is news.
			r.proposed = ""
		}
		r.mu.Unlock()
		state, changed := r.history.lookup(digest)
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
	rules := r.history.enter(version, digest)
	if rules == nil {
		klog.InfoS("The RBAC rules that another replica sees have not arrived here; members are withheld until they have", "version", version)
	}
	if rules != r.history.latest() {
		// Perhaps this replica has seen more, and says so. Rules that are not here may never arrive, if the replica that
		// wrote of them is gone.
		r.wake()
	}
}
