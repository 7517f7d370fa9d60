// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package openmcp

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/duration"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// AccessRequest requests access to a cluster with certain rights, by a token or by an OIDC provider. The provider of the cluster responds with a
// Secret in the namespace of the request, which contains a kubeconfig. Deleting the request revokes the access.
type AccessRequest struct {
	metav1.TypeMeta
	// metadata is the standard object metadata. The hub sets the labels clusters.openmcp.cloud/provider and clusters.openmcp.cloud/profile when it
	// knows the provider of the cluster.
	metav1.ObjectMeta

	// spec defines the requested access.
	Spec AccessRequestSpec
	// status represents the observed state of the request.
	Status AccessRequestStatus
}

// AccessRequestSpec defines the requested access: the cluster, the rights and the lifetime. Exactly one of token and oidc must be set.
type AccessRequestSpec struct {
	// clusterRef references the Cluster to get access to. It takes precedence over requestRef. Once set, it can be neither changed nor removed.
	ClusterRef *ObjectReference
	// requestRef references a ClusterRequest, to get access to its Cluster. When the ClusterRequest is granted, the hub sets clusterRef to that
	// Cluster. Once set, it can be neither changed nor removed.
	RequestRef *ObjectReference
	// token requests access as a ServiceAccount. Its token is renewed until the request is deleted.
	Token *TokenConfig
	// oidc requests access for users and groups of an OIDC provider. Not all cluster providers support this.
	OIDC *OIDCConfig
	// ttl is the lifetime of the request since its creation, such as 24h or 1h30m. After it, the hub deletes the request, which revokes the access.
	// It must be above 0 in a new request. If it is not set, the request exists until it is deleted.
	TTL *duration.Duration
}

// TokenConfig defines the rights of a ServiceAccount.
type TokenConfig struct {
	// permissions define roles to create for the ServiceAccount, one for each entry: at most 128.
	Permissions []PermissionsRequest
	// roleRefs reference roles of the cluster to grant to the ServiceAccount, at most 256.
	RoleRefs []RoleRef
}

// OIDCConfig defines the users and groups of an OIDC provider that get access, and their rights.
type OIDCConfig struct {
	// OIDCProviderConfig identifies the OIDC provider.
	OIDCProviderConfig
	// roles define roles to create in the cluster, one for each entry: at most 128. They grant no rights by themselves: roleBindings reference them
	// by their names.
	Roles []PermissionsRequest
}

// PermissionsRequest defines the rules of one role.
type PermissionsRequest struct {
	// name is the name of the role. If it is empty, the cluster provider chooses an unused name. A role of this name that the provider did not create
	// is never overwritten.
	Name string
	// namespace is the namespace of the cluster that the rules apply to, a DNS label of at most 63 characters; the provider creates a Role in it. If
	// it is empty, the rules apply to the whole cluster, and the provider creates a ClusterRole.
	Namespace string
	// disableAutomaticNamespaceCreation is true if the provider must not create the namespace when it does not exist in the cluster. The default is
	// false.
	DisableAutomaticNamespaceCreation bool
	// rules are the rights, as in a Role or ClusterRole: at most 256, each with at least one verb.
	Rules []rbacv1.PolicyRule
}

// RoleRef references a role of the cluster.
type RoleRef struct {
	// name is the name of the role.
	Name string
	// namespace is the namespace of a Role, and required for it. It is ignored for a ClusterRole, which is granted in the whole cluster.
	Namespace string
	// kind is the kind of the role: Role or ClusterRole.
	Kind string
}

// AccessRequestStatus represents the observed state of an AccessRequest.
type AccessRequestStatus struct {
	// Status contains the fields that the status of all kinds has.
	Status
	// secretRef references the Secret with the kubeconfig, in the namespace of the request.
	SecretRef *LocalObjectReference
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// AccessRequestList is a list of AccessRequests.
type AccessRequestList struct {
	metav1.TypeMeta
	// metadata is the standard list metadata.
	metav1.ListMeta
	// items are the AccessRequests.
	Items []AccessRequest
}
