// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManifestWorkReplicaSetRevision is a template of a ManifestWorkReplicaSet of its namespace that was rolled out successfully to all clusters, for
// rollbacks by kubectl hub rollout undo. The hub stores at most two for each replica set. The server rejects a revision whose template is not the
// current one of the replica set, and one of a replica set that is not rolled out according to its status. A revision is deleted with its replica
// set.
type ManifestWorkReplicaSetRevision struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The hub derives the name from the replica set and its revision.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the template that was rolled out. Required and immutable.
	// +required
	Spec ManifestWorkReplicaSetRevisionSpec `json:"spec"`
}

// ManifestWorkReplicaSetRevisionSpec is a template that was rolled out.
type ManifestWorkReplicaSetRevisionSpec struct {
	// replicaSet is the name of the ManifestWorkReplicaSet, 1 to 62 characters. Required.
	// +required
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=62
	ReplicaSet string `json:"replicaSet"`
	// replicaSetUID is the UID of the ManifestWorkReplicaSet, 1 to 128 characters. It distinguishes the revisions of replica sets that had the same
	// name. Required.
	// +required
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=128
	ReplicaSetUID types.UID `json:"replicaSetUID"`
	// revision is the metadata.generation of the ManifestWorkReplicaSet at which the template was rolled out, 1 or more. It is larger for later
	// templates. Required.
	// +required
	// +k8s:validation:minimum=1
	Revision int64 `json:"revision"`
	// manifestWorkTemplate is the template of the works. Required.
	// +required
	// +k8s:opaqueType
	ManifestWorkTemplate workv1.ManifestWorkSpec `json:"manifestWorkTemplate"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManifestWorkReplicaSetRevisionList is a list of ManifestWorkReplicaSetRevisions.
type ManifestWorkReplicaSetRevisionList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the ManifestWorkReplicaSetRevisions.
	Items []ManifestWorkReplicaSetRevision `json:"items"`
}
