// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import "errors"

// The reasons that conditions give, beside those of the API.
const (
	ReasonProgressing        = "Progressing"
	ReasonProviderError      = "ProviderError"
	ReasonRemoving           = "Removing"
	ReasonWaitingForDeletion = "WaitingForDeletion"
	ReasonClusterNotReady    = "ClusterNotReady"
	ReasonClusterNotHeld     = "ClusterNotHeld"
	ReasonClusterError       = "ClusterInteractionProblem"
	ReasonNotManaged         = "ResourceNotManaged"
	ReasonRecreating         = "WaitingForRecreation"
	ReasonOIDCNotSupported   = "OIDCNotSupported"
	ReasonOIDCConflict       = "OIDCConflict"
	ReasonOIDCIssuerRefused  = "OIDCIssuerRefused"
	ReasonOIDCPrefixRefused  = "OIDCPrefixRefused"
	ReasonNotAskedFor        = "NotAskedFor"
	ReasonRolesFound         = "RolesFound"
	ReasonRolesMissing       = "RolesMissing"
	ReasonGranted            = "Granted"
	ReasonDenied             = "Denied"
	ReasonSecretsForbidden   = "SecretsForbidden"
)

type reasoned struct {
	reason string
	error
}

func (e reasoned) Unwrap() error { return e.error }

// Because is an error with the reason that a condition gives for it.
func Because(reason string, err error) error { return reasoned{reason, err} }

// ReasonOf is the reason that a condition gives for an error.
func ReasonOf(err error, otherwise string) string {
	if r := (reasoned{}); errors.As(err, &r) {
		return r.reason
	}
	return otherwise
}
