// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteracceptance

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/controllers/registration/record"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

// copyCached copies the record of an older hub if the cache shows one that has not been copied.
func (r *Reconciler) copyCached(ctx context.Context, cluster string) error {
	role := clusterRole(cluster)
	if err := r.client.Get(ctx, client.ObjectKeyFromObject(role), role); err != nil || !record.IsOn(role) {
		return kit.IgnoreGone(err)
	}
	if kept, err := record.Get(ctx, r.client, cluster); kept != nil || err != nil {
		return err
	}
	_, err := r.copy(ctx, cluster)
	return err
}

// copy copies the record of an older hub from the cluster's ClusterRole to a ConfigMap. While both exist, the ConfigMap counts: it may have been
// written since. The one on the ClusterRole is deleted with it, or with the next change of it (ownrole.go).
func (r *Reconciler) copy(ctx context.Context, cluster string) (copied bool, err error) {
	role := clusterRole(cluster)
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(role), role); err != nil || !record.IsOn(role) {
		return false, kit.IgnoreGone(err)
	}
	kept := record.New(cluster)
	record.On(role).Write(kept)
	if err := r.create(ctx, kept); err != nil && !apierrors.IsAlreadyExists(err) {
		return false, err
	}
	return true, nil
}

// cachedRecord returns the record of a cluster from the caches, also that of an older hub.
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

// liveRecord returns the current record of a cluster, or nil. It copies that of an older hub first, even if the cache does not show it.
func (r *Reconciler) liveRecord(ctx context.Context, cluster string) (*corev1.ConfigMap, error) {
	kept, err := record.Get(ctx, r.live, cluster)
	if kept != nil || err != nil {
		return kept, err
	}
	if copied, err := r.copy(ctx, cluster); !copied || err != nil {
		return nil, err
	}
	return record.Get(ctx, r.live, cluster)
}
