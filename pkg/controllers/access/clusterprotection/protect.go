// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterprotection

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

// BeingDeletedError reports that a Cluster is being deleted and cannot be protected any more.
type BeingDeletedError struct{ Cluster client.ObjectKey }

func (e *BeingDeletedError) Error() string {
	return fmt.Sprintf("the Cluster %q is being deleted, so there is no new access to it", e.Cluster)
}

// Protect ensures that a Cluster outlives the AccessRequests for it. It must be called when the AccessRequest names the Cluster, and before a
// provider acts on it, with clients that do not read from a cache. Then either the Cluster is not being deleted yet, and has the finalizer as long
// as the AccessRequest exists, or Protect returns a BeingDeletedError.
func Protect(ctx context.Context, live client.Reader, writer client.Writer, key client.ObjectKey) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		cluster := &v1alpha1.Cluster{}
		if err := live.Get(ctx, key, cluster); err != nil {
			return err
		}
		if !cluster.DeletionTimestamp.IsZero() {
			return &BeingDeletedError{Cluster: key}
		}
		_, err := kit.Patch(ctx, writer, cluster, func(c *v1alpha1.Cluster) { controllerutil.AddFinalizer(c, v1alpha1.AccessFinalizer) })
		return err
	})
}

// HoldsCluster reports whether a Cluster that is being deleted waits for an AccessRequest. It does not wait for requests that have no access and
// will get none: they are denied, or were created when it was being deleted already. Otherwise every user who may create AccessRequests could
// prevent the deletion of every Cluster.
func HoldsCluster(r *v1alpha1.AccessRequest) bool {
	if r.Status.IsDenied() {
		return false
	}
	prepared := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionPrepared)
	if prepared == nil || prepared.Status == metav1.ConditionTrue || r.Status.IsGranted() || r.Status.SecretRef != nil {
		return true
	}
	switch _, labelled := r.Labels[v1alpha1.ProviderLabel]; prepared.Reason {
	case v1alpha1.ReasonDeniedByPolicy: // its deletion is handed over by another phase
		return false
	case v1alpha1.ReasonWaitingForAccessRequestDeletion: // its Cluster was being deleted before a provider could act on it
		return labelled
	}
	return true
}
