// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package csr implements the identity that is a client certificate, which the hub signs.
package csr

import (
	"fmt"

	"github.com/spf13/pflag"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/clusterhub/clusterhub/pkg/agent/identity"
	"github.com/clusterhub/clusterhub/pkg/agent/management"
	"github.com/clusterhub/clusterhub/pkg/agent/rights"
	"github.com/clusterhub/clusterhub/pkg/agent/state"
)

// Name is the name of the driver for --registration-auth.
const Name = "csr"

// RegisterDriver registers by client certificates.
type RegisterDriver struct {
	// ExpirationSeconds is the requested lifetime of certificates, in seconds; with 0 the hub decides.
	ExpirationSeconds int32
}

var _ identity.RegisterDriver = &RegisterDriver{}

// New returns the driver with the defaults of its flags.
func New() *RegisterDriver { return &RegisterDriver{} }

// Names implements identity.RegisterDriver.
func (d *RegisterDriver) Names() []string { return []string{Name} }

// Summary implements identity.RegisterDriver.
func (d *RegisterDriver) Summary() string { return "a client certificate" }

// AddFlags implements identity.RegisterDriver.
func (d *RegisterDriver) AddFlags(fs *pflag.FlagSet) {
	fs.Int32Var(&d.ExpirationSeconds, "client-cert-expiration-seconds", d.ExpirationSeconds,
		"The requested lifetime of client certificates, in seconds, at least 600. If 0, the hub decides.")
}

// Validate implements identity.RegisterDriver.
func (d *RegisterDriver) Validate(bool) []error {
	if d.ExpirationSeconds != 0 && d.ExpirationSeconds < 600 {
		return []error{fmt.Errorf("--client-cert-expiration-seconds must be 0 or at least 600, not %d", d.ExpirationSeconds)}
	}
	return nil
}

// Rights implements identity.RegisterDriver.
func (d *RegisterDriver) Rights() rights.Rights {
	requests := rights.Rules{Cluster: []rbacv1.PolicyRule{
		rights.Rule("certificates.k8s.io", "certificatesigningrequests", "create", "get")}}
	return rights.Sum(management.TellRights, rights.Rights{Bootstrap: requests, Hub: requests})
}

// New implements identity.RegisterDriver.
func (d *RegisterDriver) New(agent identity.Agent) (identity.Identity, error) {
	return &certificate{agent: agent, expirationSeconds: d.ExpirationSeconds}, nil
}

// Find implements identity.RegisterDriver.
func (d *RegisterDriver) Find(s state.State) (identity.Identity, error) {
	if len(s.Cert) == 0 {
		return nil, nil
	}
	return &certificate{}, nil
}
