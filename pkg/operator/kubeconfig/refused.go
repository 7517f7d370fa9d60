// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

// Reasons for which a source is refused, as conditions have them.
const (
	// ReasonMissing: the Secret has no such key, or the key is empty.
	ReasonMissing = "KubeconfigMissing"
	// ReasonTooLarge: it has more than MaxSize bytes, or a part of it is longer than such a part can be.
	ReasonTooLarge = "KubeconfigTooLarge"
	// ReasonUnreadable: it is no kubeconfig.
	ReasonUnreadable = "KubeconfigUnreadable"
	// ReasonNoContext: current-context names no context with a cluster and a user that are there.
	ReasonNoContext = "NoContext"
	// ReasonNoServer: the cluster has no server, or one that is no https URL with a host and nothing but a path.
	ReasonNoServer = "NoServer"
	// ReasonInsecure: the server is http, or the cluster has insecure-skip-tls-verify.
	ReasonInsecure = "Insecure"
	// ReasonNoCA: the cluster has no certificate-authority-data, or what is there is no certificate.
	ReasonNoCA = "NoCA"
	// ReasonFilePath: it refers to a file, which is on another machine.
	ReasonFilePath = "FilePath"
	// ReasonExecPlugin: the user logs in by a program: exec or auth-provider.
	ReasonExecPlugin = "ExecPlugin"
	// ReasonImpersonation: the user acts as another one.
	ReasonImpersonation = "Impersonation"
	// ReasonNoCredentials: the user has neither a usable token nor a certificate with its key.
	ReasonNoCredentials = "NoCredentials"
	// ReasonInvalidProxy: proxy-url is no URL of a proxy.
	ReasonInvalidProxy = "InvalidProxy"
)

// Refused says why a kubeconfig of a user is not taken. Neither field has anything of the kubeconfig in it.
type Refused struct {
	// Reason is one of the above.
	Reason string
	// Message says what was expected, what was got and what to do, in one line.
	Message string
}

// Error implements error.
func (r *Refused) Error() string { return r.Message }
