// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package openmcp

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// AccessToken requests a short-lived token of a granted AccessRequest. It is created with the subresource token of the request, and is not stored.
type AccessToken struct {
	metav1.TypeMeta
	// metadata has the name and the namespace of the AccessRequest.
	metav1.ObjectMeta

	// spec defines the requested token.
	Spec AccessTokenSpec
	// status contains the token.
	Status AccessTokenStatus
}

// AccessTokenSpec defines the requested token.
type AccessTokenSpec struct {
	// expirationSeconds is the requested lifetime of the token in seconds, 600 (10 minutes) to 86400 (24 hours). The default is 3600 (one hour).
	ExpirationSeconds *int64
	// audiences are the audiences of the token, at most 16. The default is the API server of the cluster.
	Audiences []string
}

// AccessTokenStatus contains a token and everything that is required to use it.
type AccessTokenStatus struct {
	// token is the token. It is empty in the response to a dry run.
	Token string
	// expirationTimestamp is the time at which the token expires, by the clock of the cluster.
	ExpirationTimestamp metav1.Time
	// server is the URL of the cluster's API server.
	Server string
	// certificateAuthorityData contains the PEM-encoded certificates of the authorities that sign the API server's certificate.
	CertificateAuthorityData []byte
	// kubeconfig is a complete kubeconfig with server, authorities and token. It is empty in the response to a dry run.
	Kubeconfig string
}

// Names of token sources: see v1alpha1.
const (
	TokenSourceNamespace                  = "clusterhub-access"
	TokenSourceSecretType                 = "clusters.clusterhub.dev/token-source"
	TokenSourceKubeconfigKey              = "kubeconfig"
	TokenSourceServiceAccountNamespaceKey = "serviceAccountNamespace"
	TokenSourceServiceAccountNameKey      = "serviceAccountName"
	TokenSourceAccessRequestKey           = "accessRequest"
)
