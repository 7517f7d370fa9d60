// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/duration"
)

// +genclient
// +genclient:method=CreateToken,verb=create,subresource=token,input=github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1.AccessToken,result=github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1.AccessToken
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// AccessRequest asks for access to a cluster with certain rights, by a token or by an OIDC provider. The provider of the
// cluster answers with a Secret in the namespace of the request, which has a kubeconfig. The subresource token answers
// with a short-lived token. Deleting the request ends the access.
type AccessRequest struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The hub sets the labels clusters.openmcp.cloud/provider and
	// clusters.openmcp.cloud/profile as soon as it knows the provider of the cluster.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the requested access. The requester writes it.
	// +optional
	Spec AccessRequestSpec `json:"spec"`
	// status is the answer. The hub and the cluster provider write it.
	// +optional
	Status AccessRequestStatus `json:"status,omitzero"`
}

// AccessRequestSpec is the requested access: to which cluster, with which rights, and for how long. Exactly one of token and oidc must be
// set.
type AccessRequestSpec struct {
	// clusterRef names the Cluster to get access to. It takes precedence over requestRef. Once set, it can be neither
	// changed nor removed.
	// +optional
	ClusterRef *ObjectReference `json:"clusterRef,omitempty"`
	// requestRef names a ClusterRequest, to get access to its Cluster. When the ClusterRequest is granted, the hub sets
	// clusterRef to that Cluster. Once set, it can be neither changed nor removed.
	// +optional
	RequestRef *ObjectReference `json:"requestRef,omitempty"`
	// token asks for access as a ServiceAccount. Its token is renewed until the request is deleted. Rights that are
	// removed here are taken back.
	// +optional
	Token *TokenConfig `json:"token,omitempty"`
	// oidc asks for access for users and groups of an OIDC provider. Not every cluster provider supports this.
	// +optional
	OIDC *OIDCConfig `json:"oidc,omitempty"`
	// ttl is how long the request lives after its creation, such as 24h or 1h30m. Then the hub deletes it, and the
	// access ends. It has to be above 0 in a new request. Without it, the request stays until it is deleted.
	// +optional
	TTL *duration.Duration `json:"ttl,omitempty"`
}

// TokenConfig is the rights of a ServiceAccount.
type TokenConfig struct {
	// permissions become roles of the ServiceAccount, one for each entry: at most 128.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=128
	Permissions []PermissionsRequest `json:"permissions,omitempty"`
	// roleRefs name roles of the cluster that the ServiceAccount gets, at most 256.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=256
	RoleRefs []RoleRef `json:"roleRefs,omitempty"`
}

// OIDCConfig says which users and groups of an OIDC provider get access, and with which rights.
type OIDCConfig struct {
	// OIDCProviderConfig is the OIDC provider.
	OIDCProviderConfig `json:",inline"`
	// roles become roles of the cluster, one for each entry: at most 128. They give no rights by themselves:
	// roleBindings refer to them by their names.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=128
	Roles []PermissionsRequest `json:"roles,omitempty"`
}

// PermissionsRequest is the rules of one role.
type PermissionsRequest struct {
	// name is the name of the role. Without it, the cluster provider chooses one that is free. A role of this name that
	// the provider did not make is never overwritten.
	// +optional
	// +k8s:validation:pattern="^[^/%]*$"
	Name string `json:"name,omitempty"`
	// namespace is the namespace of the cluster for which the rules are, a DNS label of at most 63 characters: they
	// become a Role in it. Without it, the rules are for the whole cluster and become a ClusterRole.
	// +optional
	// +k8s:validation:maxLength=63
	// +k8s:validation:pattern="^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$"
	Namespace string `json:"namespace,omitempty"`
	// disableAutomaticNamespaceCreation is true when the provider must not create the namespace if the cluster does not
	// have it. The default is false.
	// +optional
	DisableAutomaticNamespaceCreation bool `json:"disableAutomaticNamespaceCreation,omitempty"`
	// rules are the rights, as in a Role or ClusterRole: at most 256, each with at least one verb.
	// +listType=atomic
	// +k8s:validation:maxItems=256
	Rules []rbacv1.PolicyRule `json:"rules"`
}

// RoleRef names a role of the cluster.
type RoleRef struct {
	// name is the name of the role.
	// +k8s:validation:minLength=1
	// +k8s:validation:pattern="^[^/%]+$"
	Name string `json:"name"`
	// namespace is the namespace of a Role, and required for it. For a ClusterRole it is ignored: a ClusterRole is
	// granted in the whole cluster.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// kind is the kind of the role: Role or ClusterRole. It is required.
	// +k8s:validation:enum=["Role","ClusterRole"]
	Kind string `json:"kind"`
}

// AccessRequestStatus is the answer to an AccessRequest.
type AccessRequestStatus struct {
	// Status has the fields of the status that all kinds have.
	Status `json:",inline"`
	// secretRef names the Secret with the kubeconfig, in the namespace of the request. Its key is kubeconfig. The
	// cluster provider writes it.
	// +optional
	SecretRef *LocalObjectReference `json:"secretRef,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// AccessRequestList is a list of AccessRequest.
type AccessRequestList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the requests.
	Items []AccessRequest `json:"items"`
}
