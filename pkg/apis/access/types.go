// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of the stored form.
const GroupName = "access.clusterhub.dev"

// Name is the name of the only AccessRevision.
const Name = "current"

// SchemeGroupVersion is the stored version.
var SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1"}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// AccessRevision marks the etcd revision from which on a new state of the RBAC rules decides what users see. Writing
// it puts a change of the rules, which live in another etcd, in order with the changes of clusters and sets.
type AccessRevision struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Digest is the digest of the compiled rules, by which each replica finds the same state in its own informers.
	Digest string `json:"digest"`
	// ClusterRoles and ClusterRoleBindings are the resource versions of the latest changes of each that are in the
	// digest. A replica that has not seen as much does not overwrite it with an older state.
	ClusterRoles        uint64 `json:"clusterRoles"`
	ClusterRoleBindings uint64 `json:"clusterRoleBindings"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// AccessRevisionList is a list of AccessRevision.
type AccessRevisionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AccessRevision `json:"items"`
}

// AddToScheme registers the kind as its own internal form: it has only the one.
func AddToScheme(scheme *runtime.Scheme) error {
	for _, version := range []string{SchemeGroupVersion.Version, runtime.APIVersionInternal} {
		scheme.AddKnownTypes(schema.GroupVersion{Group: GroupName, Version: version},
			&AccessRevision{}, &AccessRevisionList{})
	}
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}
