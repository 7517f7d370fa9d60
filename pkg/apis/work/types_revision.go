// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManifestWorkReplicaSetRevision is a template of a ManifestWorkReplicaSet of its namespace that was rolled out successfully to all clusters, for
// rollbacks by kubectl hub rollout undo. The hub stores at most two for each replica set. The server rejects a revision whose template is not the
// current one of the replica set, and one of a replica set that is not rolled out according to its status. A revision is deleted with its replica
// set.
type ManifestWorkReplicaSetRevision struct {
	metav1.TypeMeta
	// metadata is the standard object metadata. The hub derives the name from the replica set and its revision.
	metav1.ObjectMeta

	// spec is the template that was rolled out. Required and immutable.
	Spec ManifestWorkReplicaSetRevisionSpec
}

// ManifestWorkReplicaSetRevisionSpec is a template that was rolled out.
type ManifestWorkReplicaSetRevisionSpec struct {
	// replicaSet is the name of the ManifestWorkReplicaSet, 1 to 62 characters. Required.
	ReplicaSet string
	// replicaSetUID is the UID of the ManifestWorkReplicaSet, 1 to 128 characters. It distinguishes the revisions of replica sets that had the same
	// name. Required.
	ReplicaSetUID types.UID
	// revision is the metadata.generation of the ManifestWorkReplicaSet at which the template was rolled out, 1 or more. It is larger for later
	// templates. Required.
	Revision int64
	// manifestWorkTemplate is the template of the works. Required.
	ManifestWorkTemplate ManifestWorkSpec
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManifestWorkReplicaSetRevisionList is a list of ManifestWorkReplicaSetRevisions.
type ManifestWorkReplicaSetRevisionList struct {
	metav1.TypeMeta
	// metadata is the standard list metadata.
	metav1.ListMeta
	// items are the ManifestWorkReplicaSetRevisions.
	Items []ManifestWorkReplicaSetRevision
}
