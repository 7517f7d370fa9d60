// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import "errors"

// The reasons of conditions, in addition to those of the API.
const (
	ReasonProgressing        = "Progressing"               // the provider is working on it
	ReasonProviderError      = "ProviderError"             // the provider failed and retries; the message has the error
	ReasonRemoving           = "Removing"                  // what was created for the object is being deleted
	ReasonWaitingForDeletion = "WaitingForDeletion"        // the object is deleted after others; the message names them
	ReasonClusterNotReady    = "ClusterNotReady"           // access waits until the Cluster is ready
	ReasonClusterNotHeld     = "ClusterNotHeld"            // the Cluster does not have the cluster of its profile, so it grants no access
	ReasonClusterError       = "ClusterInteractionProblem" // the cluster did not respond, or rejected a request; the message has the error
	ReasonNotManaged         = "ResourceNotManaged"        // an object with the name exists that the provider did not create; it is not changed
	ReasonRecreating         = "WaitingForRecreation"      // an object with the name is still being deleted; it is recreated after that
	ReasonOIDCNotSupported   = "OIDCNotSupported"          // the provider does not trust OIDC issuers: request a token
	ReasonOIDCConflict       = "OIDCConflict"              // another request has different settings for the same issuer
	ReasonOIDCIssuerRefused  = "OIDCIssuerRefused"         // the cluster may not trust this issuer
	ReasonOIDCPrefixRefused  = "OIDCPrefixRefused"         // the prefix of users or groups could be confused with others of the cluster
	ReasonNotAskedFor        = "NotAskedFor"               // no request specifies it
	ReasonRolesFound         = "RolesFound"                // the cluster has all requested roles
	ReasonRolesMissing       = "RolesMissing"              // the cluster does not have all roles; the message names them
	ReasonGranted            = "Granted"                   // the request has its access
	ReasonDenied             = "Denied"                    // the request was denied; the message has the reason
	ReasonSecretsForbidden   = "SecretsForbidden"          // the provider may not write Secrets in the namespace of the request
)

type reasoned struct {
	reason string
	error
}

func (e reasoned) Unwrap() error { return e.error }

// Because adds the reason for a condition to an error.
func Because(reason string, err error) error { return reasoned{reason, err} }

// ReasonOf returns the reason of an error for a condition.
func ReasonOf(err error, otherwise string) string {
	if r := (reasoned{}); errors.As(err, &r) {
		return r.reason
	}
	return otherwise
}
