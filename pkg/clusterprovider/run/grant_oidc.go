// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"

	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/hub"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/rights"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/target"
	"github.com/clusterhub/clusterhub/pkg/clusterprovider/internal/trust"
)

// grantOIDC gives access to those whom an OIDC provider knows.
func (r *access) grantOIDC(
	ctx context.Context, ar *v1alpha1.AccessRequest, cluster *v1alpha1.Cluster, config *rest.Config, t *target.Target,
) (*answer, error) {
	wanted, err := rights.Of(ar, r.Hash(ar))
	if err != nil {
		return nil, err
	}
	keep := wanted.Objects
	if !trust.Holds(ar) {
		keep = nil // their subjects have names of an issuer that is about to be trusted no more
	}
	have, err := t.Cleanup(ctx, keep)
	if err != nil {
		return nil, err
	}
	// Before the rights: whoever is refused gets none.
	if err := r.issuers.Admit(ctx, ar, cluster, t); err != nil {
		return nil, err
	}
	if err := t.Make(ctx, wanted, have); err != nil {
		return nil, err
	}
	// A token that the request had before it asked for OIDC is of no use any more.
	if r.tokenSources(ctx) {
		if err := r.deleteSecret(ctx, ar, hub.TokenSourceName(ar)); err != nil {
			return nil, err
		}
	}
	kubeconfig, err := oidcKubeconfig(config, cluster, &ar.Spec.OIDC.OIDCProviderConfig)
	if err != nil {
		return nil, err
	}
	secret := r.accessSecret(ar, config, map[string][]byte{v1alpha1.SecretKeyKubeconfig: kubeconfig})
	if err := r.writeSecret(ctx, secret, ar); err != nil {
		return nil, err
	}
	roles := r.roles.Look(ctx, t, cluster, wanted, target.JustNow)
	return &answer{message: "access by the OIDC provider " + ar.Spec.OIDC.Name, roles: roles}, nil
}
