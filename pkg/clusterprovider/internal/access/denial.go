// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/answer"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
)

// denials keeps a request that has been denied from being granted later. The phase Denied alone does not do so: openMCP's
// operator sets it back to Pending whenever the request changes. So the provider writes a condition of its own as soon as it
// sees the phase, and sets the phase again wherever there is the condition. Requesters cannot write the status.
type denials struct {
	// seen are the UIDs of those that were denied and may not say so yet: the phase may be another when they are looked at.
	seen sync.Map
}

// notice is told of every version of a request.
func (d *denials) notice(ar *v1alpha1.AccessRequest) {
	if ar.Status.IsDenied() && !recorded(ar) {
		d.seen.Store(ar.UID, nil)
	}
}

// forget is told of a request that is gone.
func (d *denials) forget(uid types.UID) { d.seen.Delete(uid) }

// has is whether a request has been denied, whatever its phase is by now.
func (d *denials) has(ar *v1alpha1.AccessRequest) bool {
	_, seen := d.seen.Load(ar.UID)
	return seen || ar.Status.IsDenied() || recorded(ar)
}

func recorded(ar *v1alpha1.AccessRequest) bool {
	return meta.IsStatusConditionTrue(ar.Status.Conditions, clusterprovider.ConditionDenied)
}

// deny makes a request say that it has been denied.
func (r *Reconciler) deny(ctx context.Context, ar *v1alpha1.AccessRequest) error {
	before := ar.DeepCopy()
	answer.Denied(ar)
	if err := hub.PatchStatus(ctx, r.client, before, ar); err != nil {
		return err
	}
	r.denials.forget(ar.UID)
	return nil
}
