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
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const (
	// byIdentity is the index of clusters by the exclusive identity that they ask for, and of records by the one that they have:
	// in ConfigMaps, and in the ClusterRoles of older hubs.
	byIdentity = "identity"
	// claimInterval is how often a cluster is looked at that asks for what another one asks for or has.
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

// claimed is what the index has of a cluster, or of a record.
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

// exclusive is the identity of a record that only one cluster can have, or "".
func (r *Reconciler) exclusive(rec record.Record) string {
	driver, ok := r.Drivers.Named(rec.Driver).(driver.Exclusive)
	if !ok {
		return ""
	}
	return driver.Identity(rec.Identity)
}

// holder is another cluster that was accepted with an identity, and has not lost all of it yet.
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

// claimant is another cluster that asks for an identity. What accepted ones have counts, and not what they say by now;
// about those that are denied an admin has decided.
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

// unheld refuses to accept a cluster with what another one has. The cluster that is accepted second does not win because
// what the first has is missing for a moment, where the driver keeps it.
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
		return failure{fmt.Errorf("%s, belongs to the cluster %q, and can belong to one only: deny this cluster, or deny that one and wait until it is denied",
			what, other), lastRetry}
	}
	// Two that were accepted in one moment are looked at by two workers, neither of which need see the other's record. But each
	// came to its own by the cache that has both clusters, so the later one of them sees that the other is accepted.
	other, err = r.claimant(ctx, cluster.Name, what, func(c *clusterv1.ManagedCluster) bool { return c.Spec.HubAcceptsClient })
	if err != nil || other == "" {
		return err
	}
	return failure{fmt.Errorf("%s, is claimed by the cluster %q, which is accepted, too, and can belong to one only: deny one of them",
		what, other), lastRetry}
}

// undisputed says whether a cluster may be accepted without an admin. If another one claims what it asks for, an event says
// so, and it is looked at again.
func (r *Reconciler) undisputed(ctx context.Context, cluster *clusterv1.ManagedCluster) (bool, error) {
	planned, err := r.plan(cluster)
	if err != nil {
		return false, nil // an admin may see more in it
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
	return false, later{after: claimInterval}
}

// notApproved tells why a cluster waits for an admin that may seem to need none.
func (r *Reconciler) notApproved(cluster *clusterv1.ManagedCluster, why string) {
	r.event(cluster, corev1.EventTypeWarning, "ManagedClusterNotAutoApproved",
		why+". An admin has to decide: kubectl hub accept --clusters "+cluster.Name)
}
