// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"errors"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/answer"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/target"
)

// revoke deletes from a reachable cluster what a request has in it. The rights are deleted first: once the issuer is no longer trusted, another
// issuer may assign the names of their subjects, and a cluster whose trust cannot be changed must not retain them.
func (r *Reconciler) revoke(ctx context.Context, ar *v1alpha1.AccessRequest, cluster *v1alpha1.Cluster, t *target.Target) error {
	if _, err := t.Cleanup(ctx, nil); err != nil {
		return err
	}
	return r.issuers.Revoke(ctx, ar, cluster)
}

// revokeFrom deletes from a Cluster's cluster what a request has in it.
func (r *Reconciler) revokeFrom(ctx context.Context, ar *v1alpha1.AccessRequest, cluster *v1alpha1.Cluster) error {
	config, err := r.connect(ctx, cluster)
	if err != nil {
		return err
	}
	t, err := r.reach(config, ar, cluster)
	if err != nil {
		return err
	}
	return r.revoke(ctx, ar, cluster, t)
}

// finalize revokes access, and removes the finalizer of the request. If the cluster is gone, or belongs to another Cluster, nothing of the request is
// in it.
func (r *Reconciler) finalize(ctx context.Context, s *observation, d decision) (reconcile.Result, error) {
	ar, before, err := s.ar, s.ar.DeepCopy(), error(nil)
	if d.mustRevoke {
		err = r.revokeFrom(ctx, ar, s.cluster)
	} else {
		ctrl.LoggerFrom(ctx).Info("No access to revoke in the cluster", "reason", d.why.Error())
	}
	if err == nil {
		err = r.answers.Delete(ctx, ar)
	}
	if err != nil {
		return r.failed(ctx, before, s, d.explain(revokeError(err)))
	}
	if ar.Status.IsDenied() {
		answer.RecordRevoked(ar)
		if err := r.answers.Report(ctx, before, ar); err != nil {
			return hub.ResultOf(err)
		}
	}
	r.Leftovers.LetGo(ar)
	r.issuers.Forget(ar.UID)
	return hub.ResultOf(hub.Patch(ctx, r.client, ar, func() { controllerutil.RemoveFinalizer(ar, r.AccessFinalizer()) }))
}

// withdraw revokes the access of a request whose Cluster no longer has its cluster. The request waits, and is granted again if the
// Cluster gets the cluster back.
func (r *Reconciler) withdraw(ctx context.Context, s *observation, d decision) (reconcile.Result, error) {
	ar := s.ar
	if d.forced {
		if err := hub.RemoveOperation(ctx, r.client, ar); err != nil {
			return hub.ResultOf(err)
		}
	}
	// Always: a grant whose status could not be written has left some. Its objects in the cluster are deleted before others get the cluster.
	failure := r.answers.Delete(ctx, ar)
	if failure == nil && !d.mustRevoke {
		return reconcile.Result{RequeueAfter: d.again}, nil
	}
	before := ar.DeepCopy()
	failure = errors.Join(failure, r.revokeFrom(ctx, ar, s.cluster))
	r.issuers.Forget(ar.UID)
	answer.Withdrawn(ar, d.why, failure)
	if err := r.answers.Report(ctx, before, ar); err != nil {
		return hub.ResultOf(err)
	}
	return reconcile.Result{RequeueAfter: d.again}, failure
}
