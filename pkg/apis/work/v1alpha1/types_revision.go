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

// ManifestWorkReplicaSetRevision keeps a template of a ManifestWorkReplicaSet of its namespace that all clusters of the set had, and that
// worked there, so that users can go back to it (kubectl hub rollout undo). The hub writes two for each set at most. The server takes a
// template only from the set itself, and only while the set says that the template is rolled out. A revision goes with its set.
type ManifestWorkReplicaSetRevision struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The hub makes the name of the set and of its revision.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the template that was rolled out. It never changes.
	// +required
	Spec ManifestWorkReplicaSetRevisionSpec `json:"spec"`
}

// ManifestWorkReplicaSetRevisionSpec is a template that was rolled out.
type ManifestWorkReplicaSetRevisionSpec struct {
	// replicaSet is the name of the ManifestWorkReplicaSet. It is required.
	// +required
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=62
	ReplicaSet string `json:"replicaSet"`
	// replicaSetUID is the UID of the set, 1 to 128 characters: a later set of the same name has revisions of its own. It is required.
	// +required
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=128
	ReplicaSetUID types.UID `json:"replicaSetUID"`
	// revision is the metadata.generation of the set at which the template was rolled out: 1 or more, and larger for what came later.
	// It is required.
	// +required
	// +k8s:validation:minimum=1
	Revision int64 `json:"revision"`
	// manifestWorkTemplate is the template. It is required.
	// +required
	ManifestWorkTemplate workv1.ManifestWorkSpec `json:"manifestWorkTemplate"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManifestWorkReplicaSetRevisionList is a list of ManifestWorkReplicaSetRevision.
type ManifestWorkReplicaSetRevisionList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the revisions.
	Items []ManifestWorkReplicaSetRevision `json:"items"`
}
