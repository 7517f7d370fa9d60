// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustersetmember

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/storage"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/klog/v2"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/visibility"
	"github.com/clusterhub/clusterhub/pkg/rbac"
)

const (
	// settle is how long a change of the rules waits for others, so that a bulk of them takes effect as one.
	settle = 20 * time.Millisecond
	// catchUp is how long the stream of members waits for this replica to see the rules that another replica saw.
	catchUp = 250 * time.Millisecond
	// keptEpochs and keptSnapshots bound how far back a watch can be resumed across changes of the rules.
	keptEpochs    = 256
	keptSnapshots = 256
	// askAfter is how long this replica yields to a visibility revision that it cannot catch up with before it asks the
	// front whether it ever will.
	askAfter = 10 * time.Second
)

// access knows which sets a user may get, at any version of the members that is still kept. The RBAC rules live in
// the front's etcd; to order their changes with those of the members, the replica that first sees a change writes an
// visibility revision to our etcd, and all replicas let the change take effect at that revision.
type access struct {
	store storage.Interface
	front rbacclient.RbacV1Interface
	// frontAt returns the versions that the front's cluster roles and bindings are at.
	frontAt func(context.Context) (roles, bindings uint64, err error)

	mu    sync.Mutex
	index *rbac.Index
	// epochs are ordered by version. They are replaced, never changed, so that readers may keep them.
	epochs []epoch
	// snapshots are the latest states that this replica went through, the newest last.
	snapshots []*rbac.Snapshot
	// snapshotRoles and snapshotBindings are how far the two kinds had been followed at the newest of them.
	snapshotRoles, snapshotBindings progress
	// changed is closed and replaced when a snapshot or an epoch is added.
	changed chan struct{}
	// dirty wakes Run.
	dirty chan struct{}
	// roles and bindings are how far this replica has followed the two kinds.
	roles, bindings progress
	// proposed is the digest that this replica has written last: it is not written again when others disagree.
	proposed string
	// behindSince is since when this replica yields. Only Run's goroutine uses it.
	behindSince time.Time
}

var _ accessObserver = &access{}

func newAccess(store storage.Interface, front rbacclient.RbacV1Interface) *access {
	return &access{
		store:   store,
		front:   front,
		frontAt: frontAt(front),
		index: rbac.NewIndex(rbac.Attributes{
			Verb: "get", Group: cluster.GroupName, Resource: "managedclustersets",
		}),
		changed: make(chan struct{}),
		dirty:   make(chan struct{}, 1),
	}
}

// Run follows the rules until the context ends.
func (a *access) Run(ctx context.Context) {
	a.followRules(ctx)
	wait.UntilWithContext(ctx, a.follow, time.Second)
}

// synced says that all rules are here.
func (a *access) synced() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.snapshots) > 0
}

// wake makes Run look at the rules again.
func (a *access) wake() {
	select {
	case a.dirty <- struct{}{}:
	default:
	}
}

// follow turns changes of the rules into visibility revisions. It returns when one could not be written, to be called
// again.
func (a *access) follow(ctx context.Context) {
	for {
		a.noteSnapshot()
		switch err := a.propose(ctx); {
		case errors.Is(err, errBehind):
			if a.behindSince.IsZero() {
				a.behindSince = time.Now()
			}
			return
		case ctx.Err() != nil:
			return
		case err != nil:
			klog.ErrorS(err, "Cannot write the visibility revision; changes of what users may see take effect later")
			return
		}
		a.behindSince = time.Time{}
		select {
		case <-ctx.Done():
			return
		case <-a.dirty:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(settle):
		}
	}
}

// noteSnapshot remembers the present state of the rules, and resolves an epoch that was waiting for it.
func (a *access) noteSnapshot() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.roles.listed || !a.bindings.listed {
		return
	}
	now := a.index.Snapshot()
	a.snapshotRoles, a.snapshotBindings = a.roles, a.bindings
	if n := len(a.snapshots); n > 0 && a.snapshots[n-1].Hash() == now.Hash() {
		return
	}
	a.snapshots = append(slices.Clip(a.snapshots[max(0, len(a.snapshots)+1-keptSnapshots):]), now)
	if n := len(a.epochs); n > 0 && a.epochs[n-1].rules == nil && a.epochs[n-1].digest == now.Hash() {
		a.epochs = slices.Clone(a.epochs)
		a.epochs[n-1].rules = now
	}
	a.broadcast()
}

func (a *access) broadcast() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// propose writes the digest of the rules that this replica sees, unless it is what counts already.
func (a *access) propose(ctx context.Context) error {
	a.mu.Lock()
	if len(a.snapshots) == 0 {
		a.mu.Unlock()
		return nil
	}
	digest := a.snapshots[len(a.snapshots)-1].Hash()
	mine := a.proposed == digest
	roles, bindings := a.snapshotRoles, a.snapshotBindings
	a.mu.Unlock()
	if mine {
		return nil
	}
	insist, err := a.frontWentBack(ctx)
	if err != nil {
		return err
	}
	err = a.store.GuaranteedUpdate(ctx, revisionKey, &visibility.Revision{}, true, nil,
		storage.SimpleUpdate(func(in runtime.Object) (runtime.Object, error) {
			revision := in.(*visibility.Revision)
			if revision.Digest == digest {
				return revision, nil
			}
			behind := revision.ClusterRoles > roles.known || revision.ClusterRoleBindings > bindings.known
			if behind && !insist(revision) {
				return nil, errBehind
			}
			revision.Name = visibility.Name
			revision.Digest = digest
			revision.ClusterRoles, revision.ClusterRoleBindings = roles.changed, bindings.changed
			return revision, nil
		}), nil)
	if err != nil {
		return err
	}
	a.mu.Lock()
	a.proposed = digest
	a.mu.Unlock()
	return nil
}

// frontWentBack tells of a visibility revision that this replica will never catch up with, because the front was restored
// from a backup and counts from an earlier version again. A replica that is merely late goes on yielding: its rules
// are old ones, and what they allow may have been revoked.
func (a *access) frontWentBack(ctx context.Context) (func(*visibility.Revision) bool, error) {
	if a.behindSince.IsZero() || time.Since(a.behindSince) < askAfter {
		return func(*visibility.Revision) bool { return false }, nil
	}
	roles, bindings, err := a.frontAt(ctx)
	if err != nil {
		return nil, err
	}
	return func(r *visibility.Revision) bool {
		return r.ClusterRoles > roles || r.ClusterRoleBindings > bindings
	}, nil
}

// reset implements accessObserver.
func (a *access) reset(_ context.Context, version uint64, digest string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.epochs = []epoch{{version: version, digest: digest, rules: a.find(digest)}}
	a.broadcast()
}

// observe implements accessObserver.
func (a *access) observe(ctx context.Context, version uint64, digest string) {
	timeout := time.NewTimer(catchUp)
	defer timeout.Stop()
	for {
		// Run may be held up by a write, with the rules long here.
		a.noteSnapshot()
		a.mu.Lock()
		if digest != a.proposed {
			// Another state counts now. Should this replica come to see its own again, that is news.
			a.proposed = ""
		}
		rules, changed := a.find(digest), a.changed
		late := false
		if rules == nil {
			select {
			case <-timeout.C:
				late = true
			default:
			}
		}
		if rules != nil || late || ctx.Err() != nil {
			if rules == nil {
				klog.InfoS("The RBAC rules that another replica sees have not arrived here; members are withheld until they have", "version", version)
				// They may never arrive, if that replica is gone and the rules have moved on. Should this one have seen
				// more, it says so.
				a.wake()
			} else if rules != a.snapshots[len(a.snapshots)-1] {
				// What holds now is not the latest that this replica has seen: perhaps it knows better.
				a.wake()
			}
			a.epochs = append(slices.Clip(a.epochs[max(0, len(a.epochs)+1-keptEpochs):]), epoch{version, digest, rules})
			a.broadcast()
			a.mu.Unlock()
			return
		}
		a.mu.Unlock()
		select {
		case <-changed:
		case <-timeout.C:
			timeout.Reset(0)
		case <-ctx.Done():
		}
	}
}

// find returns the state of the rules with a digest, if this replica has been there. It is called with the lock.
func (a *access) find(digest string) *rbac.Snapshot {
	for _, s := range slices.Backward(a.snapshots) {
		if s.Hash() == digest {
			return s
		}
	}
	return nil
}

var errBehind = errors.New("another replica has seen later RBAC rules")
