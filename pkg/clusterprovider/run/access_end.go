// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
)

// takeBack removes from a cluster that is reached what a request has in it. The rights go first: once the issuer is not trusted any
// more, another one may give out the names that they are for, and a cluster that cannot be told whom to trust must not keep them.
func (r *access) takeBack(ctx context.Context, ar *v1alpha1.AccessRequest, cluster *v1alpha1.Cluster, t *target) error {
	if _, err := t.cleanup(ctx, nil); err != nil {
		return err
	}
	if ar.Spec.OIDC == nil && meta.FindStatusCondition(ar.Status.Conditions, clusterprovider.ConditionOIDCTrusted) == nil {
		return nil
	}
	return r.trust(ctx, cluster, ar)
}

// end takes access back, and lets the request go.
func (r *access) end(ctx context.Context, ar *v1alpha1.AccessRequest) (reconcile.Result, error) {
	before := ar.DeepCopy()
	err := r.revoke(ctx, ar)
	if err == nil {
		err = r.deleteSecrets(ctx, ar)
	}
	if err != nil {
		return r.failed(ctx, before, ar, fmt.Errorf("taking access back: %w", err))
	}
	if ar.Status.IsDenied() {
		ar.Status.SecretRef = nil
		meta.RemoveStatusCondition(&ar.Status.Conditions, clusterprovider.ConditionRoles)
		setCondition(&ar.Status.Status, ar.Generation, metav1.Condition{
			Type: clusterprovider.ConditionAccess, Status: metav1.ConditionFalse, Reason: reasonDenied, Message: "the access was taken back",
		})
		if err := r.report(ctx, before, ar); err != nil {
			return settle(err)
		}
	}
	r.leftovers.letGo(ar)
	r.fit.Delete(ar.UID)
	return settle(patch(ctx, r.client, ar, func() { controllerutil.RemoveFinalizer(ar, r.accessFinalizer()) }))
}

// revoke removes from the cluster what gives access to it. With a cluster that is gone, or another's by now, so is that.
func (r *access) revoke(ctx context.Context, ar *v1alpha1.AccessRequest) error {
	cluster, err := r.clusterOf(ctx, ar)
	if errors.Is(err, errNotOurs) || reasonOf(err, "") == v1alpha1.ReasonInvalidReference {
		ctrl.LoggerFrom(ctx).Info("Nothing to take back: the cluster is gone", "reason", err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	// To end what has been withdrawn, the cluster need not be reached, which may be another's by now. The provider is asked again:
	// the Cluster may have got it back.
	said := meta.FindStatusCondition(ar.Status.Conditions, clusterprovider.ConditionAccess)
	if why := r.withdrawn(ctx, cluster); why != nil && !mayHaveAccess(ar) && says(said, why) {
		return nil
	}
	return r.takeBackFrom(ctx, ar, cluster)
}

// stillValid is whether an access that could not be renewed can be used.
func (r *access) stillValid(ctx context.Context, ar *v1alpha1.AccessRequest) bool {
	condition := meta.FindStatusCondition(ar.Status.Conditions, clusterprovider.ConditionAccess)
	if !ar.Status.IsGranted() || condition == nil || condition.ObservedGeneration != ar.Generation {
		return false
	}
	secret, err := r.secret(ctx, answerName(ar))
	if err != nil {
		return false
	}
	_, expires, ok := lifetime(secret)
	return r.madeFor(ar, secret) && (ar.Spec.OIDC != nil || ok && time.Now().Before(expires))
}
