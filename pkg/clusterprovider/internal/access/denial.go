// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/answer"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
)

// denials prevents that a denied request is granted later. The phase Denied is not sufficient: openMCP's operator resets it to Pending whenever the
// request changes. So the provider writes a condition of its own as soon as it observes the phase, and sets the phase again wherever the condition is
// set. Requesters cannot write the status.
type denials struct {
	// seen has the UIDs of requests that were denied and may not have the condition yet: the phase may have changed before they are reconciled.
	seen sync.Map
}

// notice observes every version of a request.
func (d *denials) notice(ar *v1alpha1.AccessRequest) {
	if ar.Status.IsDenied() && !recorded(ar) {
		d.seen.Store(ar.UID, nil)
	}
}

// forget drops a deleted request.
func (d *denials) forget(uid types.UID) { d.seen.Delete(uid) }

// has reports whether a request has been denied, whatever its current phase is.
func (d *denials) has(ar *v1alpha1.AccessRequest) bool {
	_, seen := d.seen.Load(ar.UID)
	return seen || ar.Status.IsDenied() || recorded(ar)
}

func recorded(ar *v1alpha1.AccessRequest) bool {
	return meta.IsStatusConditionTrue(ar.Status.Conditions, clusterprovider.ConditionDenied)
}

// record records on a request that it has been denied.
func (d *denials) record(ctx context.Context, c client.Client, ar *v1alpha1.AccessRequest) error {
	before := ar.DeepCopy()
	answer.Denied(ar)
	if err := hub.PatchStatus(ctx, c, before, ar); err != nil {
		return err
	}
	d.forget(ar.UID)
	return nil
}
