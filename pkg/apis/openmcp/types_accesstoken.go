// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package openmcp

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// AccessToken asks for a short-lived token of the access that an AccessRequest has been granted. It is sent to the
// subresource token of the request, answered, and stored nowhere.
type AccessToken struct {
	metav1.TypeMeta
	// metadata has the name and the namespace of the AccessRequest.
	metav1.ObjectMeta

	// spec is the requested token.
	Spec AccessTokenSpec
	// status is the token.
	Status AccessTokenStatus
}

// AccessTokenSpec is the requested token.
type AccessTokenSpec struct {
	// expirationSeconds is for how long the token is wanted.
	ExpirationSeconds *int64
	// audiences are whom the token is for, 16 at most. Without them it is for the API server of the cluster.
	Audiences []string
}

// AccessTokenStatus is a token and all that is needed to use it.
type AccessTokenStatus struct {
	// token is the token. A dry run has none.
	Token string
	// expirationTimestamp is when the token expires, as the cluster says.
	ExpirationTimestamp metav1.Time
	// server is the address of the cluster's API server.
	Server string
	// certificateAuthorityData is the CA of the API server's certificate, in PEM.
	CertificateAuthorityData []byte
	// kubeconfig has all of it, ready for use. A dry run has none.
	Kubeconfig string
}

// What a token source is made of; see v1alpha1.
const (
	TokenSourceNamespace                  = "clusterhub-access"
	TokenSourceSecretType                 = "clusters.clusterhub.dev/token-source"
	TokenSourceKubeconfigKey              = "kubeconfig"
	TokenSourceServiceAccountNamespaceKey = "serviceAccountNamespace"
	TokenSourceServiceAccountNameKey      = "serviceAccountName"
	TokenSourceAccessRequestKey           = "accessRequest"
)
