// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/answer"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/target"
)

// Forget drops the state of a deleted Cluster.
func (r *Reconciler) Forget(cluster *v1alpha1.Cluster) {
	r.Leftovers.Forget(cluster)
	r.Giving.locks.Delete(cluster.UID)
}

// RevokeAll revokes all access to the cluster of a Cluster, whether the hub has records of it or not, before others get that cluster.
func (r *Reconciler) RevokeAll(ctx context.Context, cluster *v1alpha1.Cluster) error {
	if err := r.recordRevocation(ctx, cluster); err != nil {
		return err
	}
	for _, take := range []func(context.Context, *v1alpha1.Cluster) error{r.RevokeDeleted, r.revokeUncached} {
		if err := take(ctx, cluster); err != nil {
			return fmt.Errorf("revoking the access to a withdrawn cluster: %w", err)
		}
	}
	return nil
}

// RevokeDeleted revokes the remaining access to a cluster whose object was deleted before its AccessRequests: the cluster may live on, and later no
// object would lead to it.
func (r *Reconciler) RevokeDeleted(ctx context.Context, cluster *v1alpha1.Cluster) error {
	list := &v1alpha1.AccessRequestList{}
	if err := r.client.List(ctx, list, client.MatchingFields{hub.ByCluster: client.ObjectKeyFromObject(cluster).String()}); err != nil {
		return err
	}
	for _, ar := range list.Items {
		if !controllerutil.ContainsFinalizer(&ar, r.AccessFinalizer()) {
			continue
		}
		config, err := r.provider.Connect(ctx, cluster)
		if err != nil {
			return err
		}
		t, err := target.WithShortTimeout(config, r.AccessLabels(&ar))
		if err != nil {
			return err
		}
		if _, err := t.Cleanup(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

// recordRevocation marks all requests of a Cluster as without access, before it is taken. As long as they are marked as granted, that is believed, and access
// would not be granted again if the Cluster gets the cluster back in between. Requests that are not reconciled, such as ignored ones, are marked as
// well.
func (r *Reconciler) recordRevocation(ctx context.Context, cluster *v1alpha1.Cluster) error {
	list, name := &v1alpha1.AccessRequestList{}, client.ObjectKeyFromObject(cluster).String()
	if err := r.client.List(ctx, list, client.MatchingFields{hub.ByCluster: name}); err != nil {
		return err
	}
	for i := range list.Items {
		ar := &list.Items[i]
		said := meta.FindStatusCondition(ar.Status.Conditions, clusterprovider.ConditionAccess)
		has := answer.MayHaveAccess(ar) || controllerutil.ContainsFinalizer(ar, r.AccessFinalizer())
		if !has || !ar.DeletionTimestamp.IsZero() || ar.Status.IsDenied() || said != nil && said.Reason == hub.ReasonClusterNotHeld {
			continue
		}
		before := ar.DeepCopy()
		answer.RecordRevoking(ar, cluster)
		if err := hub.PatchStatus(ctx, r.client, before, ar); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// revokeUncached revokes access that the caches do not have, or not as such: the objects in the cluster show what was granted for which Cluster.
func (r *Reconciler) revokeUncached(ctx context.Context, cluster *v1alpha1.Cluster) error {
	config, err := r.provider.Connect(ctx, cluster)
	if err != nil {
		return err
	}
	if truster, ok := r.provider.(clusterprovider.OIDCTruster); ok {
		if err := truster.TrustOIDC(ctx, cluster.DeepCopy(), nil); err != nil {
			return err
		}
	}
	t, err := target.WithShortTimeout(config, nil)
	if err != nil {
		return err
	}
	return r.Leftovers.RemoveAll(ctx, t, cluster)
}
