// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManifestWorkReplicaSetRevision keeps a template of a ManifestWorkReplicaSet of its namespace that all clusters of the set had, and that
// worked there, so that users can go back to it (kubectl hub rollout undo). The hub writes two for each set at most. The server takes a
// template only from the set itself, and only while the set says that the template is rolled out. A revision goes with its set.
type ManifestWorkReplicaSetRevision struct {
	metav1.TypeMeta
	// metadata is the standard object metadata. The hub makes the name of the set and of its revision.
	metav1.ObjectMeta

	// spec is the template that was rolled out. It never changes.
	Spec ManifestWorkReplicaSetRevisionSpec
}

// ManifestWorkReplicaSetRevisionSpec is a template that was rolled out.
type ManifestWorkReplicaSetRevisionSpec struct {
	// replicaSet is the name of the ManifestWorkReplicaSet. It is required.
	ReplicaSet string
	// replicaSetUID is the UID of the set, 1 to 128 characters: a later set of the same name has revisions of its own. It is required.
	ReplicaSetUID types.UID
	// revision is the metadata.generation of the set at which the template was rolled out: 1 or more, and larger for what came later.
	// It is required.
	Revision int64
	// manifestWorkTemplate is the template. It is required.
	ManifestWorkTemplate ManifestWorkSpec
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManifestWorkReplicaSetRevisionList is a list of ManifestWorkReplicaSetRevision.
type ManifestWorkReplicaSetRevisionList struct {
	metav1.TypeMeta
	// metadata is the standard list metadata.
	metav1.ListMeta
	// items are the revisions.
	Items []ManifestWorkReplicaSetRevision
}
