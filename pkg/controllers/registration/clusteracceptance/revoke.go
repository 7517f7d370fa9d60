// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteracceptance

import (
	"context"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/record"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// bindingInterval is the interval of checks of a binding that has a finalizer. Its deletion arrives as an event.
const bindingInterval = time.Minute

// deny revokes what a cluster was granted. Its agents may still see that they are denied.
func (r *Reconciler) deny(ctx context.Context, cluster *clusterv1.ManagedCluster) error {
	condition := meta.FindStatusCondition(cluster.Status.Conditions, registration.ConditionHubAccepted)
	if condition != nil && condition.Reason == registration.ReasonDenied && !r.anythingCached(ctx, cluster.Name, true) {
		r.paces.forget(cluster.Name)
		return nil
	}
	kept, err := r.liveRecord(ctx, cluster.Name)
	if err != nil {
		return err
	}
	if err := r.beginRevocation(ctx, kept); err != nil {
		return err
	}
	// The rights first. Objects that the caches do not have yet are deleted, too.
	if err := r.denyOwnRole(ctx, cluster.Name); err != nil {
		return err
	}
	if err := r.deleteRoleBindings(ctx, cluster.Name); err != nil {
		return err
	}
	if err := r.revoke(ctx, cluster.Name, kept); err != nil {
		return err
	}
	if err := r.delete(ctx, &coordinationv1.Lease{ObjectMeta: objectMeta(cluster.Name, cluster.Name, registration.LeaseName)}); err != nil {
		return err
	}
	return r.condition(ctx, cluster, metav1.ConditionFalse, registration.ReasonDenied, registration.MessageDenied)
}

// remove deletes everything of a cluster that is being deleted, and then removes the finalizer.
func (r *Reconciler) remove(ctx context.Context, cluster *clusterv1.ManagedCluster) error {
	if !slices.Contains(cluster.Finalizers, registration.Finalizer) && !r.anythingCached(ctx, cluster.Name, false) {
		return nil // other finalizers are left, or nothing was ever created for it
	}
	err := r.removeDelivered(ctx, cluster)
	delivered := err != nil
	if !delivered {
		err = r.removeAll(ctx, cluster.Name)
	}
	if reportErr := r.tellLeft(ctx, cluster, delivered, err); reportErr != nil {
		return reportErr
	}
	if err != nil {
		return err
	}
	if err := r.setFinalizer(ctx, cluster, false); err != nil && !kit.IsGone(err) {
		return fmt.Errorf("removing the finalizer from the ManagedCluster: %w", err)
	}
	r.paces.forget(cluster.Name)
	return nil
}

// orphan deletes what is left of a cluster that does not exist: its finalizer was removed by force, or the hub's data was restored from an earlier
// state.
func (r *Reconciler) orphan(ctx context.Context, cluster string) error {
	if !r.anythingCached(ctx, cluster, false) {
		r.paces.forget(cluster)
		return nil
	}
	err := r.live.Get(ctx, client.ObjectKey{Name: cluster}, &clusterv1.ManagedCluster{})
	if !kit.IsGone(err) {
		return err // the cluster exists, and arrives as an event
	}
	return r.removeAll(ctx, cluster)
}

// anythingCached reports whether the caches have any object of a cluster or, for a denied cluster, any object that must be deleted.
func (r *Reconciler) anythingCached(ctx context.Context, cluster string, denied bool) bool {
	for _, binding := range roleBindings(cluster) {
		if r.client.Get(ctx, client.ObjectKeyFromObject(binding), binding) == nil && (!denied || binding.DeletionTimestamp.IsZero()) {
			return true
		}
	}
	if r.cached(ctx, &coordinationv1.Lease{}, client.ObjectKey{Namespace: cluster, Name: registration.LeaseName}) {
		return true
	}
	kept := record.New(cluster)
	remembered := r.client.Get(ctx, client.ObjectKeyFromObject(kept), kept) == nil
	if denied {
		return remembered && record.Of(kept).Driver != "" || r.tooMuch(ctx, cluster)
	}
	own := client.ObjectKey{Name: registration.ClusterRole(cluster)}
	return remembered || r.cached(ctx, &rbacv1.ClusterRole{}, own) || r.cached(ctx, &rbacv1.ClusterRoleBinding{}, own)
}

// removeAll deletes the rights of a cluster's agents, revokes what its driver granted, and then deletes the rest. The record is the last.
func (r *Reconciler) removeAll(ctx context.Context, cluster string) error {
	kept, err := r.liveRecord(ctx, cluster)
	if err != nil {
		return err
	}
	if err := r.beginRevocation(ctx, kept); err != nil {
		return err
	}
	if err := r.deleteOwnRole(ctx, cluster); err != nil {
		return err
	}
	if err := r.deleteRoleBindings(ctx, cluster); err != nil {
		return err
	}
	if err := r.revoke(ctx, cluster, kept); err != nil {
		return err
	}
	if err := r.delete(ctx, &coordinationv1.Lease{ObjectMeta: objectMeta(cluster, cluster, registration.LeaseName)}); err != nil {
		return err
	}
	work := client.ObjectKey{Namespace: cluster, Name: registration.WorkRoleBinding(cluster)}
	binding := &rbacv1.RoleBinding{}
	err = r.live.Get(ctx, work, binding)
	switch {
	case err == nil: // works of the cluster must be cleaned up
		return remaining(bindingInterval, "The RoleBinding %s has finalizers: the controllers that added them remove them after their cleanup. "+
			"Remaining: %s", work, some(binding.Finalizers))
	case !kit.IsGone(err):
		return err
	}
	if kept != nil {
		return r.delete(ctx, kept)
	}
	return nil
}

// deleteRoleBindings deletes the bindings in the cluster's namespace. The binding for works stays as long as its finalizer.
func (r *Reconciler) deleteRoleBindings(ctx context.Context, cluster string) error {
	for _, binding := range roleBindings(cluster) {
		if err := r.delete(ctx, binding); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reconciler) delete(ctx context.Context, obj client.Object) error {
	if err := r.client.Delete(ctx, obj); err != nil && !kit.IsGone(err) {
		return fmt.Errorf("deleting %T %s: %w", obj, client.ObjectKeyFromObject(obj), err)
	}
	return nil
}

// beginRevocation marks a record as being revoked, before anything is revoked. The record may be nil.
func (r *Reconciler) beginRevocation(ctx context.Context, kept *corev1.ConfigMap) error {
	if kept == nil {
		return nil
	}
	return record.Patch(ctx, r.client, kept, func(kept *record.Record) {
		kept.Granted, kept.Note, kept.Revoking = time.Time{}, "", true
	})
}

// revoke has the driver revoke what the record says, and then deletes the driver from the record.
func (r *Reconciler) revoke(ctx context.Context, cluster string, kept *corev1.ConfigMap) error {
	granted := record.Of(kept)
	if granted.Driver == "" {
		return nil
	}
	driver := r.Drivers.Named(granted.Driver)
	if driver == nil {
		return notEnabled(granted.Driver)
	}
	const what = "revoke"
	if wait, last := r.paces.wait(cluster, what); wait > 0 {
		return repeated(wait, last)
	}
	err := r.call(ctx, driver, func(ctx context.Context) error { return driver.Revoke(ctx, cluster, granted.Identity) })
	if isRequeue(err) {
		return err
	}
	if err != nil {
		err = fmt.Errorf("revoking the cluster's identity: %w", err)
		return failed(r.paces.failed(cluster, what, err), "%v", err)
	}
	r.paces.forget(cluster)
	return record.Patch(ctx, r.client, kept, func(kept *record.Record) { *kept = kept.Revoked() })
}

func notEnabled(driver string) error {
	return failed(0, "the cluster was accepted by the registration driver %q, which is not enabled: add it to --registration-drivers", driver)
}
