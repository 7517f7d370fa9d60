// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/rights"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/target"
	"github.com/clusterhub/clusterhub/pkg/conditionevents"
)

// mostRolesNamed bounds a message.
const mostRolesNamed = 20

// rememberRoles says on a request whether its roles are there. What is not known stays as it was said last.
func rememberRoles(s target.SeenRoles, ar *v1alpha1.AccessRequest) {
	condition := metav1.Condition{
		Type: clusterprovider.ConditionRoles, Status: metav1.ConditionTrue, Reason: hub.ReasonRolesFound, Message: "the cluster has all roles that are referred to",
	}
	switch {
	case !s.Known:
		return
	case !s.Referred:
		meta.RemoveStatusCondition(&ar.Status.Conditions, clusterprovider.ConditionRoles)
		return
	case len(s.Missing) > 0:
		named, more := s.Missing, ""
		if len(named) > mostRolesNamed {
			named, more = named[:mostRolesNamed], fmt.Sprintf(" and %d more", len(s.Missing)-mostRolesNamed)
		}
		condition.Status, condition.Reason = metav1.ConditionFalse, hub.ReasonRolesMissing
		condition.Message = "not in the cluster, and so without any right as yet: " + strings.Join(named, ", ") + more
	}
	hub.SetCondition(&ar.Status.Status, ar.Generation, condition)
}

// followRoles looks whether the roles of a request whose access is in place are still there, or there by now. A cluster that does
// not answer must not keep the requests of others waiting.
func (r *access) followRoles(ctx context.Context, s *seen) error {
	wanted, err := rights.Of(s.ar, r.Hash(s.ar))
	if err != nil || len(wanted.ReferredTo()) == 0 || s.cluster.Status.Phase != v1alpha1.StatusPhaseReady || s.closer.unreachable != nil {
		return nil //nolint:nilerr // what was granted is not wrong; the Cluster says what else is
	}
	config := rest.CopyConfig(s.closer.config)
	config.Timeout = target.CloseTimeout
	t, err := target.New(config, nil, nil)
	if err != nil {
		return err
	}
	return r.reportRoles(ctx, s.ar, r.roles.Look(ctx, t, s.cluster, wanted, target.Lately))
}

func (r *access) reportRoles(ctx context.Context, ar *v1alpha1.AccessRequest, seen target.SeenRoles) error {
	before := ar.DeepCopy()
	rememberRoles(seen, ar)
	if err := hub.PatchStatus(ctx, r.client, before, ar); err != nil {
		return err
	}
	r.tellOfRoles(before, ar)
	return nil
}

// tellOfRoles makes an event when roles are missing, or are there that were missing. That all is well from the start is not worth one.
func (r *access) tellOfRoles(before, ar *v1alpha1.AccessRequest) {
	if meta.FindStatusCondition(before.Status.Conditions, clusterprovider.ConditionRoles) == nil &&
		meta.IsStatusConditionTrue(ar.Status.Conditions, clusterprovider.ConditionRoles) {
		return
	}
	conditionevents.Record(r.events, ar, before.Status.Conditions, ar.Status.Conditions, clusterprovider.ConditionRoles, "LookForRoles")
}
