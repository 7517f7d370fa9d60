// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// AccessToken asks for a short-lived token of an AccessRequest that is granted. Send it to the subresource token of the
// request. It is stored nowhere.
type AccessToken struct {
	metav1.TypeMeta `json:",inline"`
	// metadata has the name and the namespace of the AccessRequest. The server writes it.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the requested token. The requester writes it.
	// +optional
	Spec AccessTokenSpec `json:"spec,omitzero"`
	// status is the token. The server writes it.
	// +optional
	Status AccessTokenStatus `json:"status,omitzero"`
}

// AccessTokenSpec is the requested token.
type AccessTokenSpec struct {
	// expirationSeconds is the requested lifetime of the token, in seconds: from 600 (10 minutes) to 86400 (24 hours). The default is 3600
	// (one hour). A value outside of this range is replaced by the nearest one in it, and no token outlives its request; a warning says so.
	// +optional
	// +default=3600
	ExpirationSeconds *int64 `json:"expirationSeconds,omitempty"`
	// audiences are the audiences of the token, at most 16. The default is the API server of the cluster.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=16
	Audiences []string `json:"audiences,omitempty"`
}

// AccessTokenStatus is a token and all that is needed to use it.
type AccessTokenStatus struct {
	// token is the token. It is empty in the answer to a dry run.
	// +optional
	Token string `json:"token,omitempty"`
	// expirationTimestamp is when the token expires, by the clock of the cluster.
	// +optional
	ExpirationTimestamp metav1.Time `json:"expirationTimestamp,omitzero"`
	// server is the URL of the cluster's API server.
	// +optional
	Server string `json:"server,omitempty"`
	// certificateAuthorityData has the PEM certificates of the authorities that sign the API server's certificate.
	// +optional
	CertificateAuthorityData []byte `json:"certificateAuthorityData,omitempty"`
	// kubeconfig is a complete kubeconfig with server, authorities and token. It is empty in the answer to a dry run.
	// +optional
	Kubeconfig string `json:"kubeconfig,omitempty"`
}

// By a token source, the provider of a cluster lets hub-apiserver ask for short-lived tokens of one AccessRequest. It is a
// Secret that is named by the UID of the request and goes with the access.
const (
	// TokenSourceNamespace is where token sources are. Providers write there, and hub-apiserver reads.
	TokenSourceNamespace = openmcp.TokenSourceNamespace
	// TokenSourceSecretType is the type of the Secret.
	TokenSourceSecretType = openmcp.TokenSourceSecretType

	// TokenSourceKubeconfigKey is the kubeconfig of the ServiceAccount that may ask for tokens: server, CA and token.
	TokenSourceKubeconfigKey = openmcp.TokenSourceKubeconfigKey
	// TokenSourceServiceAccountNamespaceKey is the key of the namespace of the ServiceAccount whose tokens are requested.
	TokenSourceServiceAccountNamespaceKey = openmcp.TokenSourceServiceAccountNamespaceKey
	// TokenSourceServiceAccountNameKey is the name of that ServiceAccount.
	TokenSourceServiceAccountNameKey = openmcp.TokenSourceServiceAccountNameKey
	// TokenSourceAccessRequestKey is the AccessRequest, as namespace/name.
	TokenSourceAccessRequestKey = openmcp.TokenSourceAccessRequestKey

	// TokenMinterServiceAccount is the ServiceAccount of a cluster whose token is in its token sources. It may create tokens
	// of the ServiceAccounts of its namespace, and nothing else.
	TokenMinterServiceAccount = "clusterhub-token-minter"
	// TokenMinterNamespace is where it is, with the ServiceAccounts of all AccessRequests.
	TokenMinterNamespace = "accessrequests"
)
