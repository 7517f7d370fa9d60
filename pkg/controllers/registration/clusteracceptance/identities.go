// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteracceptance

import (
	"cmp"
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/record"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/pkg/registration/agentcsr"
)

const (
	// byIdentity is the index of clusters by the exclusive identity that they claim, and of records by the one that they have: in ConfigMaps, and
	// in the ClusterRoles of older hubs.
	byIdentity = "identity"
	// claimInterval is the interval of checks of a cluster that claims what another one claims or has.
	claimInterval = time.Minute
)

// identities returns the identities of clusters, and which clusters claim or have one.
type identities struct {
	client  client.Reader
	records records
	drivers driver.Drivers
}

// index adds the index to a cache.
func (i *identities) index(ctx context.Context, indexer client.FieldIndexer) error {
	for _, obj := range []client.Object{&clusterv1.ManagedCluster{}, &corev1.ConfigMap{}, &rbacv1.ClusterRole{}} {
		if err := indexer.IndexField(ctx, obj, byIdentity, i.claimed); err != nil {
			return err
		}
	}
	return nil
}

// plan returns the record with which a cluster would be accepted now.
func (i *identities) plan(cluster *clusterv1.ManagedCluster) (record.Record, error) {
	if err := registration.CheckName(cluster.Name); err != nil {
		return record.Record{}, err
	}
	driver, err := i.drivers.For(cluster)
	if err != nil {
		return record.Record{}, err
	}
	if _, err := registration.Requesters(cluster.Annotations); err != nil {
		return record.Record{}, err
	}
	planned, err := driver.Plan(cluster)
	key := agentcsr.PlannedKey(cluster.Annotations)
	return record.Record{
		Driver: driver.Name(), Identity: planned, UID: cluster.UID, Key: key, KeyNamed: cmp.Or(key, registration.NoKey),
		Requesters: cluster.Annotations[registration.AnnotationRequesters],
	}, err
}

// claimed returns the index values of a cluster or a record.
func (i *identities) claimed(obj client.Object) []string {
	var rec record.Record
	switch o := obj.(type) {
	case *corev1.ConfigMap:
		rec = record.Of(o)
	case *rbacv1.ClusterRole:
		rec = record.On(o)
	case *clusterv1.ManagedCluster:
		rec, _ = i.plan(o)
	}
	if what := i.exclusive(rec); what != "" {
		return []string{what}
	}
	return nil
}

// exclusive returns the identity of a record if only one cluster can have it, or "".
func (i *identities) exclusive(rec record.Record) string {
	driver, ok := i.drivers.Named(rec.Driver).(driver.Exclusive)
	if !ok {
		return ""
	}
	return driver.Identity(rec.Identity)
}

// holder returns another cluster that was accepted with an identity of which not all has been revoked.
func (i *identities) holder(ctx context.Context, cluster, what string) (string, error) {
	stored, older := &corev1.ConfigMapList{}, &rbacv1.ClusterRoleList{}
	for _, list := range []client.ObjectList{stored, older} {
		if err := i.client.List(ctx, list, client.MatchingFields{byIdentity: what}); err != nil {
			return "", err
		}
	}
	for n := range stored.Items {
		if other := stored.Items[n].Name; other != cluster {
			return other, nil
		}
	}
	for n := range older.Items {
		if other := clusterNameOf(&older.Items[n]); other != cluster {
			return other, nil
		}
	}
	return "", nil
}

// claimant returns another cluster that claims an identity. It skips accepted clusters, whose record counts and not what they claim now, and denied
// ones, on which an admin has decided.
func (i *identities) claimant(ctx context.Context, cluster, what string, matters func(*clusterv1.ManagedCluster) bool) (string, error) {
	list := &clusterv1.ManagedClusterList{}
	if err := i.client.List(ctx, list, client.MatchingFields{byIdentity: what}); err != nil {
		return "", err
	}
	for n := range list.Items {
		other := &list.Items[n]
		if other.Name == cluster || denied(other) || !other.DeletionTimestamp.IsZero() || !matters(other) {
			continue
		}
		rec, err := i.records.cached(ctx, other.Name)
		if err != nil {
			return "", err
		}
		if rec.Driver == "" {
			return other.Name, nil
		}
	}
	return "", nil
}
