// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

const (
	// NamespacesAnnotation of a Secret that admits a cluster lists the namespaces that may have the cluster, separated by commas; * stands for all
	// namespaces. Without it, none may.
	NamespacesAnnotation = "clusters.clusterhub.dev/namespaces"
	// HolderAnnotation of such a Secret is the UID of the Cluster that has the cluster. The provider sets it with a write that is conditional on the
	// version of the Secret that it has read, and removes it with the Cluster.
	HolderAnnotation = "clusters.clusterhub.dev/holder"
	// HolderNameAnnotation is the namespace and name of that Cluster, for users.
	HolderNameAnnotation = "clusters.clusterhub.dev/holder-name"

	// ConditionHeld of a Cluster is True if it has the cluster of its profile.
	ConditionHeld = "Held"

	reasonHeld       = "Held"                // the Cluster has the cluster for itself
	reasonTaken      = "Taken"               // another Cluster has it
	reasonNotAllowed = "NamespaceNotAllowed" // the Secret that admits the cluster does not list the namespace of the Cluster
	reasonWithdrawn  = "Withdrawn"           // the namespace had the cluster and may no longer have it
	reasonLeftovers  = "AccessOfAnother"     // access of a previous Cluster still exists
)

// hold assigns the cluster of a Secret to a Cluster, if it may have it and no other Cluster has it. One cluster under two names would be shared by
// users who want it for themselves.
//
// There is no queue: a Cluster that was rejected because another had the cluster stays rejected. Otherwise it could wait for the moment in which the
// owner recreates its Cluster.
func (p *Provider) hold(ctx context.Context, cluster *v1alpha1.Cluster, secret *corev1.Secret) (metav1.Condition, error) {
	refused := func(reason, message string) metav1.Condition {
		return metav1.Condition{Type: ConditionHeld, Status: metav1.ConditionFalse, Reason: reason, Message: message}
	}
	held := metav1.Condition{Type: ConditionHeld, Status: metav1.ConditionTrue, Reason: reasonHeld,
		Message: fmt.Sprintf("the cluster of the configuration %q is assigned to this Cluster", secret.Name)}
	taken := refused(reasonTaken, fmt.Sprintf("the cluster of the configuration %q is assigned to another Cluster: "+
		"delete this Cluster, and create it again after the other Cluster is deleted", secret.Name))

	holder := types.UID(secret.Annotations[HolderAnnotation])
	if holder != cluster.UID && wasRefused(cluster) { // before anything that would overwrite the record of it
		return taken, nil
	}
	if !mayAssign(secret, cluster.Namespace) {
		reason, may := reasonNotAllowed, "may not use"
		if holder == cluster.UID || wasWithdrawn(cluster) { // the status records it before the Secret is changed
			reason, may = reasonWithdrawn, "may no longer use"
		}
		return refused(reason, fmt.Sprintf("the namespace %q %s the cluster of the configuration %q: an admin of the "+
			"provider can allow it with kubectl annotate secret %s -n %s --overwrite %s=%s",
			cluster.Namespace, may, secret.Name, secret.Name, secret.Namespace, NamespacesAnnotation, cluster.Namespace)), nil
	}
	if holder == cluster.UID {
		return held, nil
	}
	there, err := false, error(nil)
	if holder != "" {
		there, err = p.exists(ctx, holder)
	} else if len(cluster.Status.Endpoints) == 0 {
		there, err = p.usedByAnother(ctx, cluster, secret)
	}
	if err != nil {
		return held, err
	}
	switch {
	case there:
		return taken, nil
	case holder != "":
		return refused(reasonLeftovers, fmt.Sprintf("the cluster of the configuration %q belonged to the Cluster '%s', which was deleted "+
			"without releasing it: the access that remains in the cluster is revoked first",
			secret.Name, secret.Annotations[HolderNameAnnotation])), nil
	}
	return held, p.assign(ctx, cluster, secret)
}

// assign records that a Cluster has the cluster of a Secret.
func (p *Provider) assign(ctx context.Context, cluster *v1alpha1.Cluster, secret *corev1.Secret) error {
	return p.record(ctx, secret, map[string]string{
		HolderAnnotation: string(cluster.UID), HolderNameAnnotation: client.ObjectKeyFromObject(cluster).String(),
	})
}

// release withdraws the cluster of a Secret from a Cluster that has it.
func (p *Provider) release(ctx context.Context, cluster *v1alpha1.Cluster, config string) error {
	secret := &corev1.Secret{}
	if err := p.hub.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: config}, secret); err != nil {
		return client.IgnoreNotFound(err)
	}
	if types.UID(secret.Annotations[HolderAnnotation]) != cluster.UID {
		return nil
	}
	return client.IgnoreNotFound(p.record(ctx, secret, nil))
}

// Withdrawn implements clusterprovider.Withdrawer. A Cluster that the Secret does not name grants no access, whatever its status in the caches is.
func (p *Provider) Withdrawn(ctx context.Context, cluster *v1alpha1.Cluster) (string, error) {
	profile := &v1alpha1.ClusterProfile{}
	if err := p.hub.Get(ctx, client.ObjectKey{Name: cluster.Spec.Profile}, profile); err != nil {
		return "", err
	}
	secret, err := p.secret(ctx, profile.Spec.ProviderConfigRef.Name)
	if err != nil {
		return "", err
	}
	_, annotated := secret.Annotations[NamespacesAnnotation] // Secrets of earlier versions are not
	outside := annotated && !mayAssign(secret, cluster.Namespace) && cluster.Status.Phase == v1alpha1.StatusPhaseReady
	switch holder := types.UID(secret.Annotations[HolderAnnotation]); {
	case holder == cluster.UID && mayAssign(secret, cluster.Namespace):
		return "", nil
	case holder == "" && wasRefused(cluster):
		return fmt.Sprintf("the cluster of the configuration %q is not assigned to it", secret.Name), nil
	case holder == cluster.UID || holder == "" && (wasWithdrawn(cluster) || outside):
		return fmt.Sprintf("its namespace may no longer use the cluster of the configuration %q", secret.Name), nil
	case holder != "":
		return fmt.Sprintf("the cluster of the configuration %q is assigned to another Cluster", secret.Name), nil
	case cluster.Status.Phase != v1alpha1.StatusPhaseReady:
		return "", nil // it has not been assigned the cluster yet, and grants no access
	}
	return "", fmt.Errorf("the configuration %q does not record the Cluster that has its cluster: the provider must reconcile the Cluster first", secret.Name)
}

// withdraw withdraws the cluster of a Secret from a Cluster, if it still may not have it.
func (p *Provider) withdraw(ctx context.Context, cluster *v1alpha1.Cluster, config string) error {
	secret, err := p.secret(ctx, config)
	if err != nil {
		return err
	}
	if types.UID(secret.Annotations[HolderAnnotation]) != cluster.UID || mayAssign(secret, cluster.Namespace) {
		return nil
	}
	return p.record(ctx, secret, nil)
}

// record writes which Cluster has the cluster of a Secret, unless the Secret has changed since it was read.
func (p *Provider) record(ctx context.Context, secret *corev1.Secret, holder map[string]string) error {
	before := secret.DeepCopy()
	if secret.Annotations == nil {
		secret.Annotations = map[string]string{}
	}
	for _, name := range []string{HolderAnnotation, HolderNameAnnotation} {
		delete(secret.Annotations, name)
		if value, ok := holder[name]; ok {
			secret.Annotations[name] = value
		}
	}
	return p.hub.Patch(ctx, secret, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// exists reports whether a Cluster with that UID exists. A holder whose finalizer was removed by force is deleted without releasing the cluster. All
// Clusters are checked: several profiles can have one configuration.
func (p *Provider) exists(ctx context.Context, uid types.UID) (bool, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("ClusterList"))
	if err := p.hub.List(ctx, list); err != nil {
		return false, err
	}
	return slices.ContainsFunc(list.Items, func(other metav1.PartialObjectMetadata) bool { return other.UID == uid }), nil
}

// usedByAnother reports whether another Cluster of the profile has the cluster although the Secret does not record it, as with earlier versions. That
// one has precedence.
func (p *Provider) usedByAnother(ctx context.Context, cluster *v1alpha1.Cluster, secret *corev1.Secret) (bool, error) {
	list := &v1alpha1.ClusterList{}
	if err := p.hub.List(ctx, list, client.MatchingFields{"spec.profile": cluster.Spec.Profile}); err != nil {
		return false, err
	}
	return slices.ContainsFunc(list.Items, func(other v1alpha1.Cluster) bool {
		return other.UID != cluster.UID && other.DeletionTimestamp.IsZero() && len(other.Status.Endpoints) > 0 &&
			mayAssign(secret, other.Namespace) && !wasRefused(&other)
	}), nil
}

// wasRefused reports whether a Cluster did not get its cluster because another had it.
func wasRefused(cluster *v1alpha1.Cluster) bool {
	before := meta.FindStatusCondition(cluster.Status.Conditions, ConditionHeld)
	return before != nil && before.Reason == reasonTaken
}

// wasWithdrawn reports whether a Cluster had its cluster until its namespace lost the permission.
func wasWithdrawn(cluster *v1alpha1.Cluster) bool {
	before := meta.FindStatusCondition(cluster.Status.Conditions, ConditionHeld)
	return before != nil && before.Reason == reasonWithdrawn
}

func mayAssign(secret *corev1.Secret, namespace string) bool {
	for allowed := range strings.SplitSeq(secret.Annotations[NamespacesAnnotation], ",") {
		allowed = strings.TrimSpace(allowed)
		if allowed == "*" || allowed != "" && allowed == namespace {
			return true
		}
	}
	return false
}
