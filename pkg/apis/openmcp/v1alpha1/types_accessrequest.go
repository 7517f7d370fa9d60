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

// AccessRequest requests access to a cluster with certain rights, by a token or by an OIDC provider. The provider of the cluster responds with a
// Secret in the namespace of the request, which contains a kubeconfig. The subresource token returns a short-lived token. Deleting the request
// revokes the access.
type AccessRequest struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The hub sets the labels clusters.openmcp.cloud/provider and clusters.openmcp.cloud/profile when it
	// knows the provider of the cluster.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the requested access. The requester writes it.
	// +optional
	Spec AccessRequestSpec `json:"spec"`
	// status represents the observed state of the request. The hub and the cluster provider write it.
	// +optional
	Status AccessRequestStatus `json:"status,omitzero"`
}

// AccessRequestSpec defines the requested access: the cluster, the rights and the lifetime. Exactly one of token and oidc must be set.
type AccessRequestSpec struct {
	// clusterRef references the Cluster to get access to. It takes precedence over requestRef. Once set, it can be neither changed nor removed.
	// +optional
	ClusterRef *ObjectReference `json:"clusterRef,omitempty"`
	// requestRef references a ClusterRequest, to get access to its Cluster. When the ClusterRequest is granted, the hub sets clusterRef to that
	// Cluster. Once set, it can be neither changed nor removed.
	// +optional
	RequestRef *ObjectReference `json:"requestRef,omitempty"`
	// token requests access as a ServiceAccount. Its token is renewed until the request is deleted. Rights that are removed from it are revoked.
	// +optional
	Token *TokenConfig `json:"token,omitempty"`
	// oidc requests access for users and groups of an OIDC provider. Not all cluster providers support this.
	// +optional
	OIDC *OIDCConfig `json:"oidc,omitempty"`
	// ttl is the lifetime of the request since its creation, such as 24h or 1h30m. After it, the hub deletes the request, which revokes the access.
	// It must be above 0 in a new request. If it is not set, the request exists until it is deleted.
	// +optional
	TTL *duration.Duration `json:"ttl,omitempty"`
}

// TokenConfig defines the rights of a ServiceAccount.
type TokenConfig struct {
	// permissions define roles to create for the ServiceAccount, one for each entry: at most 128.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=128
	Permissions []PermissionsRequest `json:"permissions,omitempty"`
	// roleRefs reference roles of the cluster to grant to the ServiceAccount, at most 256.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=256
	RoleRefs []RoleRef `json:"roleRefs,omitempty"`
}

// OIDCConfig defines the users and groups of an OIDC provider that get access, and their rights.
type OIDCConfig struct {
	// OIDCProviderConfig identifies the OIDC provider.
	OIDCProviderConfig `json:",inline"`
	// roles define roles to create in the cluster, one for each entry: at most 128. They grant no rights by themselves: roleBindings reference them
	// by their names.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=128
	Roles []PermissionsRequest `json:"roles,omitempty"`
}

// PermissionsRequest defines the rules of one role.
type PermissionsRequest struct {
	// name is the name of the role. If it is empty, the cluster provider chooses an unused name. A role of this name that the provider did not create
	// is never overwritten.
	// +optional
	// +k8s:validation:pattern="^[^/%]*$"
	Name string `json:"name,omitempty"`
	// namespace is the namespace of the cluster that the rules apply to, a DNS label of at most 63 characters; the provider creates a Role in it. If
	// it is empty, the rules apply to the whole cluster, and the provider creates a ClusterRole.
	// +optional
	// +k8s:validation:maxLength=63
	// +k8s:validation:pattern="^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$"
	Namespace string `json:"namespace,omitempty"`
	// disableAutomaticNamespaceCreation is true if the provider must not create the namespace when it does not exist in the cluster. The default is
	// false.
	// +optional
	DisableAutomaticNamespaceCreation bool `json:"disableAutomaticNamespaceCreation,omitempty"`
	// rules are the rights, as in a Role or ClusterRole: at most 256, each with at least one verb. Required.
	// +listType=atomic
	// +k8s:validation:maxItems=256
	Rules []rbacv1.PolicyRule `json:"rules"`
}

// RoleRef references a role of the cluster.
type RoleRef struct {
	// name is the name of the role. Required.
	// +k8s:validation:minLength=1
	// +k8s:validation:pattern="^[^/%]+$"
	Name string `json:"name"`
	// namespace is the namespace of a Role, and required for it. It is ignored for a ClusterRole, which is granted in the whole cluster.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// kind is the kind of the role: Role or ClusterRole. Required.
	// +k8s:validation:enum=["Role","ClusterRole"]
	Kind string `json:"kind"`
}

// AccessRequestStatus represents the observed state of an AccessRequest.
type AccessRequestStatus struct {
	// Status contains the fields that the status of all kinds has.
	Status `json:",inline"`
	// secretRef references the Secret with the kubeconfig, in the namespace of the request. The key in the Secret is kubeconfig. The cluster provider
	// writes the field.
	// +optional
	SecretRef *LocalObjectReference `json:"secretRef,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// AccessRequestList is a list of AccessRequests.
type AccessRequestList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the AccessRequests.
	Items []AccessRequest `json:"items"`
}
