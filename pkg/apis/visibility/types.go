// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What is stored is called access revision: names in etcd stay, so that replicas of two versions understand each other.
const (
	// GroupName is the API group of the stored form.
	GroupName = "access.clusterhub.dev"
	// Resource is the directory that it is stored in.
	Resource = "accessrevisions"

	kind = "AccessRevision"
)

// Name is the name of the only Revision.
const Name = "current"

// SchemeGroupVersion is the stored version.
var SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1"}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Revision marks the etcd revision from which on a new state of the RBAC rules decides what users see. Writing
// it puts a change of the rules, which live in another etcd, in order with the changes of clusters and sets.
type Revision struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Digest is the digest of the compiled rules, by which each replica finds the same state among those that it has seen.
	Digest string `json:"digest"`
	// ClustersDigest is the digest of the rules that decide which clusters users see. Replicas of earlier versions leave it out, and
	// replicas that know it write it again.
	ClustersDigest string `json:"clustersDigest,omitempty"`
	// ClusterRoles and ClusterRoleBindings are the resource versions of the latest changes of each that are in the
	// digest. A replica that has not seen as much does not overwrite it with an older state.
	ClusterRoles        uint64 `json:"clusterRoles"`
	ClusterRoleBindings uint64 `json:"clusterRoleBindings"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RevisionList is a list of Revision.
type RevisionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Revision `json:"items"`
}

// AddToScheme registers the kind as its own internal form: it has only the one.
func AddToScheme(scheme *runtime.Scheme) error {
	for _, version := range []string{SchemeGroupVersion.Version, runtime.APIVersionInternal} {
		group := schema.GroupVersion{Group: GroupName, Version: version}
		scheme.AddKnownTypeWithName(group.WithKind(kind), &Revision{})
		scheme.AddKnownTypeWithName(group.WithKind(kind+"List"), &RevisionList{})
	}
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}
