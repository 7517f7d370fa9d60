// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package mint

// Reasons why a source is rejected, for conditions.
const (
	// ReasonMissing: the Secret does not have the key, or the key is empty.
	ReasonMissing = "KubeconfigMissing"
	// ReasonTooLarge: it has more than MaxSize bytes, or a part of it is too long.
	ReasonTooLarge = "KubeconfigTooLarge"
	// ReasonUnreadable: it is not a kubeconfig.
	ReasonUnreadable = "KubeconfigUnreadable"
	// ReasonNoContext: current-context names no context with an existing cluster and user.
	ReasonNoContext = "NoContext"
	// ReasonNoServer: the cluster has no server, or one that is not an https URL with a host and at most a path.
	ReasonNoServer = "NoServer"
	// ReasonInsecure: the server is http, or the cluster has insecure-skip-tls-verify.
	ReasonInsecure = "Insecure"
	// ReasonNoCA: the cluster has no certificate-authority-data, or it is not a certificate.
	ReasonNoCA = "NoCA"
	// ReasonFilePath: it refers to a file, which is on another machine.
	ReasonFilePath = "FilePath"
	// ReasonExecPlugin: the user logs in with a program: exec or auth-provider.
	ReasonExecPlugin = "ExecPlugin"
	// ReasonImpersonation: the user impersonates another user.
	ReasonImpersonation = "Impersonation"
	// ReasonNoCredentials: the user has neither a usable token nor a certificate with its key.
	ReasonNoCredentials = "NoCredentials"
	// ReasonInvalidProxy: proxy-url is not the URL of a proxy.
	ReasonInvalidProxy = "InvalidProxy"
)

// Refused reports why a user's kubeconfig is rejected. Neither field quotes the kubeconfig.
type Refused struct {
	// Reason is one of the reasons above.
	Reason string
	// Message describes what was expected, what was found and what to do, in one line.
	Message string
}

// Error implements error.
func (r *Refused) Error() string { return r.Message }
