// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package work

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManifestWorkReplicaSet makes a ManifestWork for each cluster that some placements of its namespace choose, and deletes it
// when a placement chooses the cluster no longer. The works can do what the one could do who wrote the spec last. The server
// records who that is in the annotation work.clusterhub.dev/author.
type ManifestWorkReplicaSet struct {
	metav1.TypeMeta
	// metadata is the standard object metadata. Namespace and name have at most 62 characters together: they are the value
	// of a label of every work.
	metav1.ObjectMeta

	// spec is the desired state: what is put on which clusters, and in which steps. Users write it.
	Spec ManifestWorkReplicaSetSpec
	// status is the observed state. The hub writes it.
	Status ManifestWorkReplicaSetStatus
}

// ManifestWorkReplicaSetSpec says what is put on which clusters.
type ManifestWorkReplicaSetSpec struct {
	// manifestWorkTemplate is the spec of the works. It is required.
	ManifestWorkTemplate ManifestWorkSpec
	// placementRefs are placements of the namespace, 1 to 64, each once.
	PlacementRefs []LocalPlacementReference
	// cascadeDeletionPolicy is Background (the default): a set that is deleted is gone at once, and its works after it.
	// Foreground: it is there until its works are gone.
	CascadeDeletionPolicy CascadeDeletionPolicy
}

// CascadeDeletionPolicy says whether a set goes before its works.
type CascadeDeletionPolicy string

const (
	// Foreground keeps the set until its works are gone.
	Foreground CascadeDeletionPolicy = "Foreground"
	// Background deletes the set first.
	Background CascadeDeletionPolicy = "Background"
)

// LocalPlacementReference names a placement of the namespace, and says in which steps its clusters get the work.
type LocalPlacementReference struct {
	// name is the name of the placement, 1 to 63 characters. It is required.
	Name string
	// rolloutStrategy says in which steps the clusters get what was changed. The default is all at once.
	RolloutStrategy cluster.RolloutStrategy
}

// ManifestWorkReplicaSetStatus is the observed state of a ManifestWorkReplicaSet.
type ManifestWorkReplicaSetStatus struct {
	// conditions say whether the placements have decisions (PlacementVerified), whether all clusters have what the spec
	// says (PlacementRolledOut), and whether the works do what they should (ManifestworkApplied). At most 128.
	Conditions []metav1.Condition
	// summary counts the works of all placements.
	Summary ManifestWorkReplicaSetSummary
	// placementSummary counts the works of each placement, at most 64.
	PlacementsSummary []PlacementSummary
}

// PlacementSummary counts the works of a placement.
type PlacementSummary struct {
	// name is the name of the placement, 1 to 63 characters. It is required.
	Name string
	// availableDecisionGroups is how many groups of the placement have their works, and how many clusters, as text for
	// people: at most 253 characters.
	AvailableDecisionGroups string
	// summary counts the works.
	Summary ManifestWorkReplicaSetSummary
}

// ManifestWorkReplicaSetSummary counts works by their state. All numbers are 0 or more.
type ManifestWorkReplicaSetSummary struct {
	// total is the number of works that there are.
	Total int
	// progressing is the number of those whose condition Progressing is True.
	Progressing int
	// available is the number of those whose condition Available is True.
	Available int
	// degraded is the number of those whose condition Degraded is True.
	Degraded int
	// applied is the number of those whose condition Applied is True.
	Applied int
	// desiredTotal is the number of works that there should be: one for each cluster.
	DesiredTotal int
	// updated is the number of those that have what the spec says now.
	Updated int
}

// Types of conditions of a ManifestWorkReplicaSet.
const (
	// ManifestWorkReplicaSetConditionPlacementVerified is True when every placement is there and has decisions.
	ManifestWorkReplicaSetConditionPlacementVerified string = "PlacementVerified"
	// ManifestWorkReplicaSetConditionPlacementRolledOut is True when all clusters have what the spec says.
	ManifestWorkReplicaSetConditionPlacementRolledOut string = "PlacementRolledOut"
	// ManifestWorkReplicaSetConditionManifestworkApplied is True when all works do what they should.
	ManifestWorkReplicaSetConditionManifestworkApplied string = "ManifestworkApplied"
)

// Reasons of conditions of a ManifestWorkReplicaSet.
const (
	// ReasonPlacementDecisionNotFound means that a placement does not exist.
	ReasonPlacementDecisionNotFound = "PlacementDecisionNotFound"
	// ReasonPlacementDecisionEmpty means that a placement has chosen no cluster.
	ReasonPlacementDecisionEmpty = "PlacementDecisionEmpty"
	// ReasonAsExpected means that the state is the desired one.
	ReasonAsExpected = "AsExpected"
	// ReasonProcessing means that works are being updated to the desired state.
	ReasonProcessing = "Processing"
	// ReasonNotAsExpected means that works are not in the desired state.
	ReasonNotAsExpected = "NotAsExpected"
	// ReasonProgressing means that the rollout is in progress.
	ReasonProgressing = "Progressing"
	// ReasonComplete means that the rollout is complete.
	ReasonComplete = "Complete"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ManifestWorkReplicaSetList is a list of ManifestWorkReplicaSet.
type ManifestWorkReplicaSetList struct {
	metav1.TypeMeta
	// metadata is the standard list metadata.
	metav1.ListMeta
	// items are the replica sets.
	Items []ManifestWorkReplicaSet
}
