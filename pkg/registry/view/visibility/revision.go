// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/klog/v2"

	"github.com/clusterhub/clusterhub/pkg/apis/visibility"
)

const (
	// settle is the delay of a change of the rules, so that many changes take effect as one.
	settle = 20 * time.Millisecond
	// askAfter is the time for which this replica yields to a visibility revision that it cannot catch up with before it checks with the front
	// whether it ever will.
	askAfter = 10 * time.Second
)

var versioner = storage.APIObjectVersioner{}

var errBehind = errors.New("another replica has seen later RBAC rules")

// propose writes visibility revisions for changes of the rules. It returns when a write failed, to be called again.
func (r *Rules) propose(ctx context.Context) {
	for {
		r.learn()
		switch err := r.write(ctx); {
		case errors.Is(err, errBehind):
			if r.behindSince.IsZero() {
				r.behindSince = time.Now()
			}
			return
		case ctx.Err() != nil:
			return
		case err != nil:
			klog.ErrorS(err, "Cannot write the visibility revision; changes of visibility take effect later")
			return
		}
		r.behindSince = time.Time{}
		select {
		case <-ctx.Done():
			return
		case <-r.dirty:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(settle):
		}
	}
}

// write writes the digest of the rules that this replica observes, unless it is the current one already.
func (r *Rules) write(ctx context.Context) error {
	r.mu.Lock()
	latest, clusters := r.history.latest(), r.clusters.latest()
	mine := latest == nil || r.proposed == latest.Hash() && r.proposedClusters == clusters.Hash()
	roles, bindings := r.stateRoles, r.stateBindings
	r.mu.Unlock()
	if mine {
		return nil
	}
	digest, clustersDigest := latest.Hash(), clusters.Hash()
	insist, err := r.frontWentBack(ctx)
	if err != nil {
		return err
	}
	err = r.store.GuaranteedUpdate(ctx, revisionKey, &visibility.Revision{}, true, nil,
		storage.SimpleUpdate(func(in runtime.Object) (runtime.Object, error) {
			revision := in.(*visibility.Revision)
			if revision.Digest == digest && revision.ClustersDigest == clustersDigest {
				return revision, nil
			}
			behind := revision.ClusterRoles > roles.known || revision.ClusterRoleBindings > bindings.known
			if behind && !insist(revision) {
				return nil, errBehind
			}
			revision.Name = visibility.Name
			revision.Digest, revision.ClustersDigest = digest, clustersDigest
			revision.ClusterRoles, revision.ClusterRoleBindings = roles.changed, bindings.changed
			return revision, nil
		}), nil)
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.proposed, r.proposedClusters = digest, clustersDigest
	r.mu.Unlock()
	return nil
}

// frontWentBack returns a function that reports whether this replica will never catch up with a visibility revision, because the front was restored
// from a backup and counts from an earlier version again. A replica that is merely late continues to yield: its rules are old, and what they allow
// may have been revoked.
func (r *Rules) frontWentBack(ctx context.Context) (func(*visibility.Revision) bool, error) {
	if r.behindSince.IsZero() || time.Since(r.behindSince) < askAfter {
		return func(*visibility.Revision) bool { return false }, nil
	}
	roles, bindings, err := r.frontAt(ctx)
	if err != nil {
		return nil, err
	}
	return func(revision *visibility.Revision) bool {
		return revision.ClusterRoles > roles || revision.ClusterRoleBindings > bindings
	}, nil
}

// frontAt returns a function that lists one object of each kind to read the versions, which are those of the whole lists.
func frontAt(client rbacclient.RbacV1Interface) func(context.Context) (roles, bindings uint64, err error) {
	return func(ctx context.Context) (roles, bindings uint64, err error) {
		one := metav1.ListOptions{Limit: 1}
		roleList, err := client.ClusterRoles().List(ctx, one)
		if err != nil {
			return 0, 0, err
		}
		bindingList, err := client.ClusterRoleBindings().List(ctx, one)
		if err != nil {
			return 0, 0, err
		}
		roles, err = versioner.ParseResourceVersion(roleList.ResourceVersion)
		if err != nil {
			return 0, 0, err
		}
		bindings, err = versioner.ParseResourceVersion(bindingList.ResourceVersion)
		return roles, bindings, err
	}
}
