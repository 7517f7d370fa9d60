// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package csr

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"
	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/registration/agentcsr"
)

const autoApprovedFlag = "auto-approved-csr-identities"

// Factory is registration by certificate.
type Factory struct {
	// AutoApproved are users whose certificate requests get the cluster accepted without an admin.
	AutoApproved []string
}

var _ driver.Factory = &Factory{}

// Name implements driver.Factory.
func (k *Factory) Name() string { return Name }

// AddFlags implements driver.Factory.
func (k *Factory) AddFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&k.AutoApproved, autoApprovedFlag, k.AutoApproved,
		"Comma-separated list of users whose clusters are accepted without an admin when they request a certificate. Requires the feature gate "+
			driver.AutoApprovalGate+".")
}

// Validate implements driver.Factory.
func (k *Factory) Validate(autoApproval bool) (errs []error) {
	if !autoApproval && len(k.AutoApproved) > 0 {
		errs = append(errs, fmt.Errorf("--%s needs --feature-gates=%s=true", autoApprovedFlag, driver.AutoApprovalGate))
	}
	for _, user := range k.AutoApproved {
		if err := agentcsr.CheckNamed(autoApprovedFlag, user); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// Rights implements driver.Factory. The requester of a certificate decides whether the cluster is accepted.
func (k *Factory) Rights() []kit.Right {
	return []kit.Right{kit.On(certificatesv1.SchemeGroupVersion, "certificatesigningrequests", "list", "watch").By("auto-approval")}
}

// New implements driver.Factory.
func (k *Factory) New(_ context.Context, o driver.Options) (driver.Driver, error) {
	return New(o.Cached, k.AutoApproved), nil
}
