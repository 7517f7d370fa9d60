// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteracceptance

import (
	"context"
	"fmt"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/controllers/registration/agentroles"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/record"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// objects are the objects that one cluster needs on the hub, except for its record.
type objects struct {
	// client reads from the caches, live from the API server.
	client  client.Client
	live    client.Reader
	clock   clock.PassiveClock
	roles   agentroles.Options
	cluster string
}

// ensureNamespace creates the namespace of the cluster. An existing namespace belongs to the cluster only if it says so: agents get rights in it, and
// a cluster can have any name.
func (o *objects) ensureNamespace(ctx context.Context) error {
	namespace := &corev1.Namespace{}
	key := client.ObjectKey{Name: o.cluster}
	err := o.client.Get(ctx, key, namespace)
	if kit.IsGone(err) {
		namespace = &corev1.Namespace{ObjectMeta: objectMeta(o.cluster, "", o.cluster)}
		namespace.Annotations = map[string]string{registration.AnnotationMade: o.cluster}
		if err = o.client.Create(ctx, namespace); apierrors.IsAlreadyExists(err) {
			namespace = &corev1.Namespace{}
			err = o.live.Get(ctx, key, namespace)
		}
	}
	if err != nil {
		return fmt.Errorf("creating the cluster's namespace: %w", err)
	}
	if namespace.Labels[registration.ClusterNameLabel] != o.cluster {
		return failed(kit.MaxBackoff, "the namespace %[1]q exists and is not the cluster's: if it is empty, let the cluster use it with "+
			"kubectl hub accept --clusters %[1]s --adopt-namespace, or with the label %[2]s=%[1]s, or join the cluster with another name", o.cluster,
			registration.ClusterNameLabel)
	}
	if !namespace.DeletionTimestamp.IsZero() {
		return &kit.Outcome{Reason: registration.ReasonNamespaceTerminating, Message: terminating(namespace), RequeueAfter: kit.MaxBackoff}
	}
	return nil
}

// terminating returns a message about a namespace of an accepted cluster that is being deleted, so that nothing can be created in it. The message
// includes the conditions of the namespace, which say what is left.
func terminating(namespace *corev1.Namespace) string {
	text := fmt.Sprintf("the namespace %[1]q of the cluster is being deleted, and is created again once it is gone. Before that, the agent deletes from "+
		"the cluster the objects of its works. If the agent is permanently gone, deny the cluster (kubectl hub deny --clusters %[1]s): then the "+
		"works are deleted, and their objects remain in the cluster", namespace.Name)
	for _, c := range namespace.Status.Conditions {
		if c.Status == corev1.ConditionTrue && c.Message != "" {
			text += ". " + c.Message
		}
	}
	return text
}

// ensureRights creates the bindings of the cluster's roles, and its Lease.
func (o *objects) ensureRights(ctx context.Context) error {
	if !o.shareRole() {
		if err := o.ensureOwnRole(ctx); err != nil {
			return err
		}
	}
	for _, want := range roleBindings(o.cluster) {
		err := ensure(ctx, o, want, &rbacv1.RoleBinding{}, func(got *rbacv1.RoleBinding) (replace bool) {
			got.Subjects = want.Subjects
			return got.RoleRef != want.RoleRef
		})
		if err != nil {
			return err
		}
	}
	return ensure(ctx, o, o.newLease(), &coordinationv1.Lease{}, func(*coordinationv1.Lease) bool {
		return false // the agent renews it
	})
}

// newLease returns the Lease that the agent renews. Its holder and its duration are those of upstream.
func (o *objects) newLease() *coordinationv1.Lease {
	now := metav1.NewMicroTime(o.clock.Now())
	lease := o.lease()
	lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: new(registration.LeaseName), RenewTime: &now}
	return lease
}

// lease returns the Lease without its spec.
func (o *objects) lease() *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: objectMeta(o.cluster, o.cluster, registration.LeaseName)}
}

// deleteRoleBindings deletes the bindings in the cluster's namespace. The binding for works exists as long as it has a finalizer.
func (o *objects) deleteRoleBindings(ctx context.Context) error {
	for _, binding := range roleBindings(o.cluster) {
		if err := o.delete(ctx, binding); err != nil {
			return err
		}
	}
	return nil
}

// deleteLease deletes the Lease.
func (o *objects) deleteLease(ctx context.Context) error { return o.delete(ctx, o.lease()) }

// confirmBindingsDeleted returns what remains while the binding for works has finalizers.
func (o *objects) confirmBindingsDeleted(ctx context.Context) error {
	key := client.ObjectKey{Namespace: o.cluster, Name: registration.WorkRoleBinding(o.cluster)}
	binding := &rbacv1.RoleBinding{}
	if err := o.live.Get(ctx, key, binding); err != nil {
		return kit.IgnoreGone(err)
	}
	// Works of the cluster must be cleaned up.
	return remaining(bindingInterval, "The RoleBinding %s has finalizers: the controllers that added them remove them after their cleanup. "+
		"Remaining: %s", key, shortened(binding.Finalizers))
}

// delete deletes an object, which may not exist.
func (o *objects) delete(ctx context.Context, obj client.Object) error {
	if err := o.client.Delete(ctx, obj); err != nil && !kit.IsGone(err) {
		return fmt.Errorf("deleting %T %s: %w", obj, client.ObjectKeyFromObject(obj), err)
	}
	return nil
}

// cached reports whether a cache has an object. Caches have only objects with the label of a cluster.
func (o *objects) cached(ctx context.Context, obj client.Object) bool {
	return !kit.IsGone(o.client.Get(ctx, client.ObjectKeyFromObject(obj), obj))
}

// cachedRecord returns the ConfigMap of the cluster's record from the cache, or nil.
func (o *objects) cachedRecord(ctx context.Context) *corev1.ConfigMap {
	stored := record.New(o.cluster)
	if err := o.client.Get(ctx, client.ObjectKeyFromObject(stored), stored); err != nil {
		return nil
	}
	return stored
}

// anyCached reports whether the caches have any object of the cluster, or its record.
func (o *objects) anyCached(ctx context.Context) bool {
	return len(o.cachedBindings(ctx)) > 0 || o.cached(ctx, o.lease()) || o.cachedRecord(ctx) != nil ||
		o.cached(ctx, clusterRole(o.cluster)) || o.cached(ctx, clusterRoleBinding(o.cluster))
}

// anyToDeny reports whether the caches have any object that must be deleted or changed when the cluster is denied.
func (o *objects) anyToDeny(ctx context.Context) bool {
	left := func(binding *rbacv1.RoleBinding) bool { return binding.DeletionTimestamp.IsZero() }
	return slices.ContainsFunc(o.cachedBindings(ctx), left) || o.cached(ctx, o.lease()) || record.Of(o.cachedRecord(ctx)).Driver != "" ||
		o.ownRoleExceedsDenied(ctx)
}

// cachedBindings returns the bindings in the cluster's namespace from the cache.
func (o *objects) cachedBindings(ctx context.Context) []*rbacv1.RoleBinding {
	return slices.DeleteFunc(roleBindings(o.cluster), func(binding *rbacv1.RoleBinding) bool {
		return o.client.Get(ctx, client.ObjectKeyFromObject(binding), binding) != nil
	})
}

// ensure creates or updates an object. adjust changes the existing object, or reports that it must be replaced.
func ensure[O any, T interface {
	*O
	client.Object
}](ctx context.Context, o *objects, want, got T, adjust func(got T) (replace bool)) error {
	key := client.ObjectKeyFromObject(want)
	err := o.client.Get(ctx, key, got)
	if kit.IsGone(err) {
		if err = o.client.Create(ctx, want); err == nil {
			return nil
		}
		if apierrors.IsAlreadyExists(err) {
			// The object is not in the cache yet, or has no label.
			err = o.live.Get(ctx, key, got)
		}
	}
	if err != nil {
		return fmt.Errorf("creating %T %s: %w", want, key, err)
	}
	if !got.GetDeletionTimestamp().IsZero() {
		return nil // it is created again when it is gone, which arrives as an event
	}
	if adjust(got.DeepCopyObject().(T)) {
		if err := o.client.Delete(ctx, got, kit.AsRead(got)); err != nil {
			return fmt.Errorf("replacing %T %s: %w", want, key, err)
		}
		if err := o.client.Create(ctx, want); err != nil {
			return fmt.Errorf("replacing %T %s: %w", want, key, err)
		}
		return nil
	}
	_, err = kit.Patch(ctx, o.client, got, func(got T) {
		adjust(got)
		labels := got.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[registration.ClusterNameLabel] = want.GetLabels()[registration.ClusterNameLabel]
		got.SetLabels(labels)
	})
	if err != nil {
		return fmt.Errorf("repairing %T %s: %w", want, key, err)
	}
	return nil
}

// objectMeta returns the metadata of an object of a cluster.
func objectMeta(cluster, namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: map[string]string{registration.ClusterNameLabel: cluster},
	}
}

// subjects returns the groups of the agents of a cluster.
func subjects(cluster string) []rbacv1.Subject {
	group := func(name string) rbacv1.Subject {
		return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: name}
	}
	return []rbacv1.Subject{group(registration.ClusterGroup(cluster)), group(registration.AWSGroup(cluster))}
}

func roleRef(clusterRole string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: clusterRole}
}

// roleBindings returns the bindings in the namespace of a cluster.
func roleBindings(cluster string) []*rbacv1.RoleBinding {
	return []*rbacv1.RoleBinding{
		{
			ObjectMeta: objectMeta(cluster, cluster, registration.AgentRoleBinding(cluster)),
			RoleRef:    roleRef(registration.AgentClusterRole), Subjects: subjects(cluster),
		},
		{
			ObjectMeta: objectMeta(cluster, cluster, registration.WorkRoleBinding(cluster)),
			RoleRef:    roleRef(registration.WorkClusterRole), Subjects: subjects(cluster),
		},
	}
}
