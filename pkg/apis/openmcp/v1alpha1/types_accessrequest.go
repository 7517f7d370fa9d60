// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +genclient:method=CreateToken,verb=create,subresource=token,input=github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1.AccessToken,result=github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1.AccessToken
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// AccessRequest asks for access to a cluster with certain rights, by a token or by an OIDC provider. The provider of the
// cluster answers with a Secret that has a kubeconfig, in the namespace of the request; the subresource token answers with a
// short-lived token. When the request is deleted, the access ends.
type AccessRequest struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The labels clusters.openmcp.cloud/provider and
	// clusters.openmcp.cloud/profile are set when it is clear who is responsible for the request.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the access that is asked for.
	// +optional
	Spec AccessRequestSpec `json:"spec"`
	// status is the answer.
	// +optional
	Status AccessRequestStatus `json:"status,omitzero"`
}

// AccessRequestSpec is the access that is asked for: to which cluster, with which rights, and for how long. Exactly one of
// token and oidc has to be set.
type AccessRequestSpec struct {
	// clusterRef names the Cluster that access is asked for. It takes precedence over requestRef. Once set, it is neither
	// changed nor removed.
	// +optional
	ClusterRef *ObjectReference `json:"clusterRef,omitempty"`
	// requestRef names the ClusterRequest whose Cluster access is asked for. When the request has been given one, clusterRef
	// is set to it. Once set, it is neither changed nor removed.
	// +optional
	RequestRef *ObjectReference `json:"requestRef,omitempty"`
	// token asks for access as a ServiceAccount, with a token that is renewed for as long as the request is there. What is not
	// asked for any more is taken back.
	// +optional
	Token *TokenConfig `json:"token,omitempty"`
	// oidc asks for access of those whom an OIDC provider knows. Not every cluster provider can do this.
	// +optional
	OIDC *OIDCConfig `json:"oidc,omitempty"`
	// ttl is how long after its creation the request is deleted, and its access with it, such as 24h or 1h30m. Without it,
	// the request stays until somebody deletes it.
	// +optional
	TTL *metav1.Duration `json:"ttl,omitempty"`
}

// TokenConfig are the rights of a ServiceAccount.
type TokenConfig struct {
	// permissions become roles of the ServiceAccount, one for each entry.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=128
	Permissions []PermissionsRequest `json:"permissions,omitempty"`
	// roleRefs name roles of the cluster that the ServiceAccount is given.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=256
	RoleRefs []RoleRef `json:"roleRefs,omitempty"`
}

// OIDCConfig is who gets in by an OIDC provider, and with which rights.
type OIDCConfig struct {
	// OIDCProviderConfig is the OIDC provider.
	OIDCProviderConfig `json:",inline"`
	// roles become roles of the cluster, one for each entry. They are not given to anybody: roleBindings do that, by their
	// names.
	// +optional
	// +listType=atomic
	// +k8s:validation:maxItems=128
	Roles []PermissionsRequest `json:"roles,omitempty"`
}

// PermissionsRequest are the rules of one role.
type PermissionsRequest struct {
	// name of the role. Without it, the cluster provider takes one that nobody else has. A role of the name that somebody
	// else made is never overwritten.
	// +optional
	// +k8s:validation:pattern="^[^/%]*$"
	Name string `json:"name,omitempty"`
	// namespace of the cluster that the rules are for; they become a Role in it. Without it, they are for the whole cluster
	// and become a ClusterRole.
	// +optional
	// +k8s:validation:maxLength=63
	// +k8s:validation:pattern="^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$"
	Namespace string `json:"namespace,omitempty"`
	// disableAutomaticNamespaceCreation says that the namespace is not created when the cluster does not have it.
	// +optional
	DisableAutomaticNamespaceCreation bool `json:"disableAutomaticNamespaceCreation,omitempty"`
	// rules are the rights, as in a Role or ClusterRole. Each needs at least one verb.
	// +listType=atomic
	// +k8s:validation:maxItems=256
	Rules []rbacv1.PolicyRule `json:"rules"`
}

// RoleRef names a role of the cluster.
type RoleRef struct {
	// name of the role.
	// +k8s:validation:minLength=1
	// +k8s:validation:pattern="^[^/%]+$"
	Name string `json:"name"`
	// namespace of the role, for a Role. A ClusterRole is given in the whole cluster, whatever is here.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// kind of the role: Role or ClusterRole.
	// +k8s:validation:enum=["Role","ClusterRole"]
	Kind string `json:"kind"`
}

// AccessRequestStatus is the answer to a request.
type AccessRequestStatus struct {
	// Status is what the status of every kind begins with.
	Status `json:",inline"`
	// secretRef names the Secret with the kubeconfig, under the key kubeconfig, in the namespace of the request.
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
