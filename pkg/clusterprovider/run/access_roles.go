// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"

	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/rights"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/target"
)

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
	return r.answers.Roles(ctx, s.ar, r.roles.Look(ctx, t, s.cluster, wanted, target.Lately))
}
