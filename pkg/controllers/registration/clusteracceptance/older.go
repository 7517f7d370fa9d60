// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteracceptance

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/controllers/kit"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/record"
)

// moveCached moves the record of an older hub if the cache shows one.
func (r *Reconciler) moveCached(ctx context.Context, cluster string) error {
	role := clusterRole(cluster)
	if err := r.client.Get(ctx, client.ObjectKeyFromObject(role), role); err != nil || !record.IsOn(role) {
		return kit.IgnoreGone(err)
	}
	_, err := r.move(ctx, cluster)
	return err
}

// move brings the record of an older hub from the cluster's ClusterRole to a ConfigMap. If this process ends in between, both
// are there. Then the ConfigMap counts: it may have been written since.
func (r *Reconciler) move(ctx context.Context, cluster string) (moved bool, err error) {
	role := clusterRole(cluster)
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(role), role); err != nil || !record.IsOn(role) {
		return false, kit.IgnoreGone(err)
	}
	kept := record.New(cluster)
	record.On(role).Write(kept)
	if err := r.create(ctx, kept); err != nil && !apierrors.IsAlreadyExists(err) {
		return false, err
	}
	return true, r.patchRole(ctx, role, record.TakeOff)
}

// cachedRecord is the record of a cluster as the caches have it, also that of an older hub.
func (r *Reconciler) cachedRecord(ctx context.Context, cluster string) (record.Record, error) {
	kept, err := record.Get(ctx, r.client, cluster)
	if kept != nil || err != nil {
		return record.Of(kept), err
	}
	role := clusterRole(cluster)
	if err := r.client.Get(ctx, client.ObjectKeyFromObject(role), role); err != nil {
		return record.Record{}, kit.IgnoreGone(err)
	}
	return record.On(role), nil
}

// liveRecord is the record of a cluster as it is, nil when there is none. That of an older hub is moved first, also where the
// cache does not show it.
func (r *Reconciler) liveRecord(ctx context.Context, cluster string) (*corev1.ConfigMap, error) {
	kept, err := record.Get(ctx, r.live, cluster)
	if kept != nil || err != nil {
		return kept, err
	}
	if moved, err := r.move(ctx, cluster); !moved || err != nil {
		return nil, err
	}
	return record.Get(ctx, r.live, cluster)
}
