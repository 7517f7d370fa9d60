// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// AccessToken asks for a short-lived token of the access that an AccessRequest has been granted. It is sent to the
// subresource token of the request, answered, and stored nowhere.
type AccessToken struct {
	metav1.TypeMeta `json:",inline"`
	// metadata has the name and the namespace of the AccessRequest.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the token that is asked for.
	// +optional
	Spec AccessTokenSpec `json:"spec,omitzero"`
	// status is the token.
	// +optional
	Status AccessTokenStatus `json:"status,omitzero"`
}

// AccessTokenSpec is the token that is asked for.
type AccessTokenSpec struct {
	// expirationSeconds is for how long the token is wanted: from 600, which is 10 minutes, to 86400, which is 24 hours. Less
	// or more becomes that, and no token outlives its request; a warning says so.
	// +optional
	// +default=3600
	ExpirationSeconds *int64 `json:"expirationSeconds,omitempty"`
	// audiences are whom the token is for, 16 at most. Without them it is for the API server of the cluster.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=16
	Audiences []string `json:"audiences,omitempty"`
}

// AccessTokenStatus is a token and all that is needed to use it.
type AccessTokenStatus struct {
	// token is the token. A dry run has none.
	// +optional
	Token string `json:"token,omitempty"`
	// expirationTimestamp is when the token expires, as the cluster says.
	// +optional
	ExpirationTimestamp metav1.Time `json:"expirationTimestamp,omitzero"`
	// server is the address of the cluster's API server.
	// +optional
	Server string `json:"server,omitempty"`
	// certificateAuthorityData is the CA of the API server's certificate, in PEM.
	// +optional
	CertificateAuthorityData []byte `json:"certificateAuthorityData,omitempty"`
	// kubeconfig has all of it, ready for use. A dry run has none.
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
	// TokenSourceServiceAccountNamespaceKey is the namespace of the ServiceAccount that tokens are asked for.
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
