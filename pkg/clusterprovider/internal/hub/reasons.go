// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import "errors"

// The reasons that conditions give, beside those of the API.
const (
	ReasonProgressing        = "Progressing"               // the provider is at it
	ReasonProviderError      = "ProviderError"             // the provider has failed and tries again; the message has the error
	ReasonRemoving           = "Removing"                  // what was made for the object is being taken away
	ReasonWaitingForDeletion = "WaitingForDeletion"        // the object goes when others are gone; the message names them
	ReasonClusterNotReady    = "ClusterNotReady"           // access waits until the Cluster is ready
	ReasonClusterNotHeld     = "ClusterNotHeld"            // the Cluster does not have the cluster of its profile, so there is no access to it
	ReasonClusterError       = "ClusterInteractionProblem" // the cluster did not answer, or refused; the message has the error
	ReasonNotManaged         = "ResourceNotManaged"        // an object of the name is there that the provider has not made; it is left alone
	ReasonRecreating         = "WaitingForRecreation"      // an object of the name is still being deleted; it is made anew after that
	ReasonOIDCNotSupported   = "OIDCNotSupported"          // the provider does not trust issuers of OIDC: ask for a token
	ReasonOIDCConflict       = "OIDCConflict"              // another request wants the same issuer otherwise
	ReasonOIDCIssuerRefused  = "OIDCIssuerRefused"         // the cluster may not trust this issuer
	ReasonOIDCPrefixRefused  = "OIDCPrefixRefused"         // the prefix of users or groups could be taken for others of the cluster
	ReasonNotAskedFor        = "NotAskedFor"               // no request asks for it
	ReasonRolesFound         = "RolesFound"                // all roles that were asked for are in the cluster
	ReasonRolesMissing       = "RolesMissing"              // the cluster does not have all of the roles; the message names them
	ReasonGranted            = "Granted"                   // the request has its access
	ReasonDenied             = "Denied"                    // the request was denied; the message says why
	ReasonSecretsForbidden   = "SecretsForbidden"          // the provider may not write Secrets in the namespace of the request
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
