// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// AccessToken requests a short-lived token of a granted AccessRequest. It is created with the subresource token of the request, and is not stored.
type AccessToken struct {
	metav1.TypeMeta `json:",inline"`
	// metadata has the name and the namespace of the AccessRequest. The server writes it.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the requested token. The requester writes it.
	// +optional
	Spec AccessTokenSpec `json:"spec,omitzero"`
	// status contains the token. The server writes it.
	// +optional
	Status AccessTokenStatus `json:"status,omitzero"`
}

// AccessTokenSpec defines the requested token.
type AccessTokenSpec struct {
	// expirationSeconds is the requested lifetime of the token in seconds, 600 (10 minutes) to 86400 (24 hours). The default is 3600 (one hour). A
	// value outside of this range is replaced by its nearest limit, and no token outlives its request; the response has a warning in these cases.
	// +optional
	// +default=3600
	ExpirationSeconds *int64 `json:"expirationSeconds,omitempty"`
	// audiences are the audiences of the token, at most 16. The default is the API server of the cluster.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=16
	Audiences []string `json:"audiences,omitempty"`
}

// AccessTokenStatus contains a token and everything that is required to use it.
type AccessTokenStatus struct {
	// token is the token. It is empty in the response to a dry run.
	// +optional
	Token string `json:"token,omitempty"`
	// expirationTimestamp is the time at which the token expires, by the clock of the cluster.
	// +optional
	ExpirationTimestamp metav1.Time `json:"expirationTimestamp,omitzero"`
	// server is the URL of the cluster's API server.
	// +optional
	Server string `json:"server,omitempty"`
	// certificateAuthorityData contains the PEM-encoded certificates of the authorities that sign the API server's certificate.
	// +optional
	CertificateAuthorityData []byte `json:"certificateAuthorityData,omitempty"`
	// kubeconfig is a complete kubeconfig with server, authorities and token. It is empty in the response to a dry run.
	// +optional
	Kubeconfig string `json:"kubeconfig,omitempty"`
}

// A token source allows hub-apiserver to request short-lived tokens of one AccessRequest from the cluster. It is a Secret that the cluster provider
// creates, with the UID of the request as its name. It is deleted when the access is revoked.
const (
	// TokenSourceNamespace is the namespace of token sources. Providers write them, and hub-apiserver reads them.
	TokenSourceNamespace = openmcp.TokenSourceNamespace
	// TokenSourceSecretType is the type of the Secret.
	TokenSourceSecretType = openmcp.TokenSourceSecretType

	// TokenSourceKubeconfigKey is the key of the kubeconfig of the ServiceAccount that may request tokens: server, CA and token.
	TokenSourceKubeconfigKey = openmcp.TokenSourceKubeconfigKey
	// TokenSourceServiceAccountNamespaceKey is the key of the namespace of the ServiceAccount whose tokens are requested.
	TokenSourceServiceAccountNamespaceKey = openmcp.TokenSourceServiceAccountNamespaceKey
	// TokenSourceServiceAccountNameKey is the key of the name of that ServiceAccount.
	TokenSourceServiceAccountNameKey = openmcp.TokenSourceServiceAccountNameKey
	// TokenSourceAccessRequestKey is the key of the AccessRequest, as namespace/name.
	TokenSourceAccessRequestKey = openmcp.TokenSourceAccessRequestKey

	// TokenMinterServiceAccount is the ServiceAccount of a cluster whose token is in its token sources. It may create tokens of the ServiceAccounts
	// of its namespace, and nothing else.
	TokenMinterServiceAccount = "clusterhub-token-minter"
	// TokenMinterNamespace is the namespace of TokenMinterServiceAccount, and of the ServiceAccounts of all AccessRequests.
	TokenMinterNamespace = "accessrequests"
)
