// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package openmcp

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/duration"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// AccessRequest asks for access to a cluster with certain rights, by a token or by an OIDC provider. The provider of the
// cluster answers with a Secret that has a kubeconfig, in the namespace of the request. When the request is deleted, the
// access ends.
type AccessRequest struct {
	metav1.TypeMeta
	// metadata is the standard object metadata. The labels clusters.openmcp.cloud/provider and
	// clusters.openmcp.cloud/profile are set when it is clear who is responsible for the request.
	metav1.ObjectMeta

	// spec is the requested access.
	Spec AccessRequestSpec
	// status is the answer.
	Status AccessRequestStatus
}

// AccessRequestSpec is the requested access: to which cluster, with which rights, and for how long. Exactly one of token and oidc must be
// set.
type AccessRequestSpec struct {
	// clusterRef names the Cluster to which access is requested. It takes precedence over requestRef. Once set, it is neither changed nor
	// removed.
	ClusterRef *ObjectReference
	// requestRef names the ClusterRequest to whose Cluster access is requested. When the request has been given one, clusterRef is set to
	// it. Once set, it is neither changed nor removed.
	RequestRef *ObjectReference
	// token asks for access as a ServiceAccount, with a token that is renewed for as long as the request is there.
	Token *TokenConfig
	// oidc asks for access of those whom an OIDC provider knows. Not every cluster provider can do this.
	OIDC *OIDCConfig
	// ttl is how long after its creation the request is deleted, and its access with it, such as 24h. Without it, the
	// request stays until it is deleted.
	TTL *duration.Duration
}

// TokenConfig are the rights of a ServiceAccount.
type TokenConfig struct {
	// permissions become roles of the ServiceAccount, one for each entry.
	Permissions []PermissionsRequest
	// roleRefs name roles of the cluster that the ServiceAccount is given.
	RoleRefs []RoleRef
}

// OIDCConfig is who gets in by an OIDC provider, and with which rights.
type OIDCConfig struct {
	// OIDCProviderConfig is the OIDC provider.
	OIDCProviderConfig
	// roles become roles of the cluster, one for each entry. They give no rights by themselves: roleBindings refer to them
	// by their names.
	Roles []PermissionsRequest
}

// PermissionsRequest are the rules of one role.
type PermissionsRequest struct {
	// name of the role. Without it, the cluster provider chooses one that is free. A role of this name that the provider did
	// not make is never overwritten.
	Name string
	// namespace of the cluster that the rules are for; they become a Role in it. Without it, they are for the whole cluster
	// and become a ClusterRole.
	Namespace string
	// disableAutomaticNamespaceCreation says that the namespace is not created when the cluster does not have it.
	DisableAutomaticNamespaceCreation bool
	// rules are the rights, as in a Role or ClusterRole. Each needs at least one verb.
	Rules []rbacv1.PolicyRule
}

// RoleRef names a role of the cluster.
type RoleRef struct {
	// name of the role.
	Name string
	// namespace of the role, for a Role. A ClusterRole is given in the whole cluster, whatever is here.
	Namespace string
	// kind of the role: Role or ClusterRole.
	Kind string
}

// AccessRequestStatus is the answer to a request.
type AccessRequestStatus struct {
	// Status has the fields of the status that all kinds have.
	Status
	// secretRef names the Secret with the kubeconfig, in the namespace of the request.
	SecretRef *LocalObjectReference
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// AccessRequestList is a list of AccessRequest.
type AccessRequestList struct {
	metav1.TypeMeta
	// metadata is the standard list metadata.
	metav1.ListMeta
	// items are the requests.
	Items []AccessRequest
}
