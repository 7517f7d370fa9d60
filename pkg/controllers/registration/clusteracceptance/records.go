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

// records reads the records of clusters, and copies those of older hubs.
type records struct {
	// client reads from the caches, live from the API server.
	client client.Client
	live   client.Reader
}

// copyCached copies the record of an older hub if the cache shows one that has not been copied.
func (r records) copyCached(ctx context.Context, cluster string) error {
	role := clusterRole(cluster)
	if err := r.client.Get(ctx, client.ObjectKeyFromObject(role), role); err != nil || !record.HasLegacy(role) {
		return kit.IgnoreGone(err)
	}
	if stored, err := record.Get(ctx, r.client, cluster); stored != nil || err != nil {
		return err
	}
	_, err := r.copy(ctx, cluster)
	return err
}

// copy copies the record of an older hub from the cluster's ClusterRole to a ConfigMap. While both exist, the ConfigMap counts: it may have been
// written since. The one on the ClusterRole is deleted with it, or with the next change of it (ownrole.go).
func (r records) copy(ctx context.Context, cluster string) (copied bool, err error) {
	role := clusterRole(cluster)
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(role), role); err != nil || !record.HasLegacy(role) {
		return false, kit.IgnoreGone(err)
	}
	stored := record.New(cluster)
	record.On(role).Write(stored)
	if err := r.create(ctx, stored); err != nil && !apierrors.IsAlreadyExists(err) {
		return false, err
	}
	return true, nil
}

// create creates the ConfigMap of a new record.
func (r records) create(ctx context.Context, stored *corev1.ConfigMap) error {
	err := r.client.Create(ctx, stored)
	if kit.IsGone(err) {
		return failed(kit.MaxBackoff, "the namespace %q, in which the hub records the identities of accepted clusters, does not exist: apply "+
			"the manifests of the hub", record.Namespace)
	}
	return err
}

// cached returns the record of a cluster from the caches, also that of an older hub.
func (r records) cached(ctx context.Context, cluster string) (record.Record, error) {
	stored, err := record.Get(ctx, r.client, cluster)
	if stored != nil || err != nil {
		return record.Of(stored), err
	}
	role := clusterRole(cluster)
	if err := r.client.Get(ctx, client.ObjectKeyFromObject(role), role); err != nil {
		return record.Record{}, kit.IgnoreGone(err)
	}
	return record.On(role), nil
}

// current returns the record of a cluster from the API server, or nil. It copies that of an older hub first, even if the cache does not show it.
func (r records) current(ctx context.Context, cluster string) (*corev1.ConfigMap, error) {
	stored, err := record.Get(ctx, r.live, cluster)
	if stored != nil || err != nil {
		return stored, err
	}
	if copied, err := r.copy(ctx, cluster); !copied || err != nil {
		return nil, err
	}
	return record.Get(ctx, r.live, cluster)
}
