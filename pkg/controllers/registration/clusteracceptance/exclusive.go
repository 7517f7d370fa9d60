// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteracceptance

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/record"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const (
	// byIdentity is the index of clusters by the exclusive identity that they claim, and of records by the one that they have: in ConfigMaps, and
	// in the ClusterRoles of older hubs.
	byIdentity = "identity"
	// claimInterval is the interval of checks of a cluster that claims what another one claims or has.
	claimInterval = time.Minute
)

// index adds the index to a cache.
func (r *Reconciler) index(ctx context.Context, indexer client.FieldIndexer) error {
	for _, obj := range []client.Object{&clusterv1.ManagedCluster{}, &corev1.ConfigMap{}, &rbacv1.ClusterRole{}} {
		if err := indexer.IndexField(ctx, obj, byIdentity, r.claimed); err != nil {
			return err
		}
	}
	return nil
}

// claimed returns the index values of a cluster or a record.
func (r *Reconciler) claimed(obj client.Object) []string {
	var rec record.Record
	switch o := obj.(type) {
	case *corev1.ConfigMap:
		rec = record.Of(o)
	case *rbacv1.ClusterRole:
		rec = record.On(o)
	case *clusterv1.ManagedCluster:
		rec, _ = r.plan(o)
	}
	if what := r.exclusive(rec); what != "" {
		return []string{what}
	}
	return nil
}

// exclusive returns the identity of a record if only one cluster can have it, or "".
func (r *Reconciler) exclusive(rec record.Record) string {
	driver, ok := r.Drivers.Named(rec.Driver).(driver.Exclusive)
	if !ok {
		return ""
	}
	return driver.Identity(rec.Identity)
}

// holder returns another cluster that was accepted with an identity, and still has some of it.
func (r *Reconciler) holder(ctx context.Context, cluster, what string) (string, error) {
	kept, older := &corev1.ConfigMapList{}, &rbacv1.ClusterRoleList{}
	for _, list := range []client.ObjectList{kept, older} {
		if err := r.client.List(ctx, list, client.MatchingFields{byIdentity: what}); err != nil {
			return "", err
		}
	}
	for i := range kept.Items {
		if other := kept.Items[i].Name; other != cluster {
			return other, nil
		}
	}
	for i := range older.Items {
		if other := clusterNameOf(&older.Items[i]); other != cluster {
			return other, nil
		}
	}
	return "", nil
}

// claimant returns another cluster that claims an identity. It skips accepted clusters, whose record counts and not what they claim now, and denied
// ones, on which an admin has decided.
func (r *Reconciler) claimant(ctx context.Context, cluster, what string, matters func(*clusterv1.ManagedCluster) bool) (string, error) {
	list := &clusterv1.ManagedClusterList{}
	if err := r.client.List(ctx, list, client.MatchingFields{byIdentity: what}); err != nil {
		return "", err
	}
	for i := range list.Items {
		other := &list.Items[i]
		condition := meta.FindStatusCondition(other.Status.Conditions, registration.ConditionHubAccepted)
		denied := !other.Spec.HubAcceptsClient && condition != nil && condition.Reason == registration.ReasonDenied
		if other.Name == cluster || denied || !other.DeletionTimestamp.IsZero() || !matters(other) {
			continue
		}
		rec, err := r.cachedRecord(ctx, other.Name)
		if err != nil {
			return "", err
		}
		if rec.Driver == "" {
			return other.Name, nil
		}
	}
	return "", nil
}

// unheld returns an error if another cluster has the identity of the record. A cluster that is accepted later does not win because the first one
// has lost its grant for a moment, if the driver restores it.
func (r *Reconciler) unheld(ctx context.Context, cluster *clusterv1.ManagedCluster, planned record.Record) error {
	what := r.exclusive(planned)
	if what == "" {
		return nil
	}
	other, err := r.holder(ctx, cluster.Name, what)
	if err != nil {
		return err
	}
	if other != "" {
		return failed(lastRetry, "%s, belongs to the cluster %q, and can only belong to one: deny this cluster, or deny that one and wait until it is denied",
			what, other)
	}
	// Two workers may reconcile two clusters that were accepted at the same time, and need not see each other's record. But each was enqueued by
	// the cache that has both clusters, so the later one sees that the other is accepted.
	other, err = r.claimant(ctx, cluster.Name, what, func(c *clusterv1.ManagedCluster) bool { return c.Spec.HubAcceptsClient })
	if err != nil || other == "" {
		return err
	}
	return failed(lastRetry, "%s, is claimed by the cluster %q, which is accepted, too, and can only belong to one: deny one of them", what, other)
}

// undisputed reports whether a cluster may be accepted without an admin. If another one claims the same identity, it records an event and requests
// another check.
func (r *Reconciler) undisputed(ctx context.Context, cluster *clusterv1.ManagedCluster) (bool, error) {
	planned, err := r.plan(cluster)
	if err != nil {
		return false, nil // an admin may know better
	}
	what := r.exclusive(planned)
	if what == "" {
		return true, nil
	}
	why := "Its identity belongs to the cluster %q"
	other, err := r.holder(ctx, cluster.Name, what)
	if err == nil && other == "" {
		why = "The cluster %q claims its identity, too"
		other, err = r.claimant(ctx, cluster.Name, what, func(*clusterv1.ManagedCluster) bool { return true })
	}
	if err != nil || other == "" {
		return err == nil, err
	}
	r.notApproved(cluster, fmt.Sprintf(why, other)+": "+what)
	return false, kit.Requeue(claimInterval)
}

// notApproved records an event on why a cluster waits for an admin although it may seem to need none.
func (r *Reconciler) notApproved(cluster *clusterv1.ManagedCluster, why string) {
	r.event(cluster, corev1.EventTypeWarning, "ManagedClusterNotAutoApproved",
		why+". An admin must decide: kubectl hub accept --clusters "+cluster.Name)
}
