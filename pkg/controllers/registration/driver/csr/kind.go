// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package csr

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"
	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/clusterhub/clusterhub/pkg/controllers/kit"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/driver"
	"github.com/clusterhub/clusterhub/pkg/registration/agentcsr"
)

const autoApprovedFlag = "auto-approved-csr-identities"

// Kind is registration by certificate.
type Kind struct {
	// AutoApproved are users whose certificate requests get the cluster accepted without an admin.
	AutoApproved []string
}

var _ driver.Kind = &Kind{}

// Name implements driver.Kind.
func (k *Kind) Name() string { return Name }

// AddFlags implements driver.Kind.
func (k *Kind) AddFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&k.AutoApproved, autoApprovedFlag, k.AutoApproved,
		"Users whose certificate requests get the cluster accepted without an admin. Needs the feature gate "+driver.AutoApprovalGate+".")
}

// Validate implements driver.Kind.
func (k *Kind) Validate(autoApproval bool) (errs []error) {
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

// Rights implements driver.Kind. The requester of a certificate decides whether the cluster is accepted.
func (k *Kind) Rights() []kit.Right {
	return []kit.Right{kit.On(certificatesv1.SchemeGroupVersion, "certificatesigningrequests", "list", "watch").By("auto-approval")}
}

// New implements driver.Kind.
func (k *Kind) New(_ context.Context, o driver.Options) (driver.Driver, error) {
	return New(o.Cached, k.AutoApproved), nil
}
