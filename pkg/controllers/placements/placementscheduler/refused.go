// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placementscheduler

import (
	"context"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"

	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

// isRefused reports whether the server refuses a write, such as for a quota, a policy or a limit, until a user changes something.
func isRefused(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch status.Status().Code {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusRequestEntityTooLarge,
		http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// reportRefused sets the conditions of a placement to the reason why its decisions are not up to date. The write is retried with an increasing delay: no
// event reports that it would be accepted. As long as the reason is the same, nothing is written.
func (r *Reconciler) reportRefused(ctx context.Context, w *work, refused error) error {
	p := w.placement.DeepCopy()
	changed, err := kit.PatchStatus(ctx, r.client, p, func(p *clusterv1beta1.Placement) {
		p.Status = w.result.Refused(&w.placement.Status, r.clock.Now(), refused)
	})
	switch {
	case kit.IsStale(err):
		return nil
	case err != nil:
		return errors.Join(refused, err)
	}
	if changed {
		ctrl.LoggerFrom(ctx).Info("A write was refused, and the status of the placement reports it", "reason", refused.Error())
		r.scheduler.learnPlacement(p)
	}
	return nil
}
