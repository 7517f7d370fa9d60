// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteracceptance

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

func objectMeta(cluster, namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: map[string]string{registration.ClusterNameLabel: cluster},
	}
}

func subjects(cluster string) []rbacv1.Subject {
	group := func(name string) rbacv1.Subject {
		return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: name}
	}
	return []rbacv1.Subject{group(registration.ClusterGroup(cluster)), group(registration.AWSGroup(cluster))}
}

func roleRef(clusterRole string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: clusterRole}
}

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

// lease returns the Lease that the agent renews. Its holder and its duration are those of upstream.
func (r *Reconciler) lease(cluster *clusterv1.ManagedCluster) *coordinationv1.Lease {
	now := metav1.NewMicroTime(r.clock.Now())
	return &coordinationv1.Lease{
		ObjectMeta: objectMeta(cluster.Name, cluster.Name, registration.LeaseName),
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new(registration.LeaseName), RenewTime: &now},
	}
}

// ensureNamespace creates the namespace of a cluster. An existing namespace belongs to the cluster only if it says so: agents get rights in it, and
// a cluster can have any name.
func (r *Reconciler) ensureNamespace(ctx context.Context, cluster string) error {
	namespace := &corev1.Namespace{}
	key := client.ObjectKey{Name: cluster}
	err := r.client.Get(ctx, key, namespace)
	if kit.IsGone(err) {
		namespace = &corev1.Namespace{ObjectMeta: objectMeta(cluster, "", cluster)}
		namespace.Annotations = map[string]string{registration.AnnotationMade: cluster}
		if err = r.client.Create(ctx, namespace); apierrors.IsAlreadyExists(err) {
			namespace = &corev1.Namespace{}
			err = r.live.Get(ctx, key, namespace)
		}
	}
	if err != nil {
		return fmt.Errorf("creating the cluster's namespace: %w", err)
	}
	if namespace.Labels[registration.ClusterNameLabel] != cluster {
		return failed(kit.MaxBackoff, "the namespace %[1]q exists and is not the cluster's: if it is empty, let the cluster use it with "+
			"kubectl hub accept --clusters %[1]s --adopt-namespace, or with the label %[2]s=%[1]s, or join the cluster with another name", cluster,
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
func (r *Reconciler) ensureRights(ctx context.Context, cluster *clusterv1.ManagedCluster) error {
	if !r.shares() {
		if err := r.ensureOwnRole(ctx, cluster.Name); err != nil {
			return err
		}
	}
	for _, want := range roleBindings(cluster.Name) {
		err := ensure(ctx, r, want, &rbacv1.RoleBinding{}, func(got *rbacv1.RoleBinding) (replace bool) {
			got.Subjects = want.Subjects
			return got.RoleRef != want.RoleRef
		})
		if err != nil {
			return err
		}
	}
	return ensure(ctx, r, r.lease(cluster), &coordinationv1.Lease{}, func(*coordinationv1.Lease) bool {
		return false // the agent renews it
	})
}

// ensure creates or updates an object. adjust changes the existing object, or reports that it must be replaced.
func ensure[O any, T interface {
	*O
	client.Object
}](ctx context.Context, r *Reconciler, want, got T, adjust func(got T) (replace bool)) error {
	key := client.ObjectKeyFromObject(want)
	err := r.client.Get(ctx, key, got)
	if kit.IsGone(err) {
		if err = r.client.Create(ctx, want); err == nil {
			return nil
		}
		if apierrors.IsAlreadyExists(err) {
			// The object is not in the cache yet, or has no label.
			err = r.live.Get(ctx, key, got)
		}
	}
	if err != nil {
		return fmt.Errorf("creating %T %s: %w", want, key, err)
	}
	if !got.GetDeletionTimestamp().IsZero() {
		return nil // it is created again when it is gone, which arrives as an event
	}
	if adjust(got.DeepCopyObject().(T)) {
		if err := r.client.Delete(ctx, got, kit.AsRead(got)); err != nil {
			return fmt.Errorf("replacing %T %s: %w", want, key, err)
		}
		if err := r.client.Create(ctx, want); err != nil {
			return fmt.Errorf("replacing %T %s: %w", want, key, err)
		}
		return nil
	}
	_, err = kit.Patch(ctx, r.client, got, func(got T) {
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
