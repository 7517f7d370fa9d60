// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PlacementExplanation explains why a Placement selects clusters, and why it does not select others. The hub computes it for each read of the
// subresource explain of a placement, and does not store it. It contains only clusters that the reader may see, which are those in managedclusters of
// clusterview.open-cluster-management.io.
type PlacementExplanation struct {
	metav1.TypeMeta `json:",inline"`
	// metadata has the name and the namespace of the Placement, and the UID and the generation that are explained.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// status is the explanation.
	// +optional
	Status PlacementExplanationStatus `json:"status,omitempty"`
}

// PlacementExplanationStatus represents the result of the placement for the current state of the hub.
type PlacementExplanationStatus struct {
	// problem describes why no clusters are newly selected, if that is the case. The clusters of the last decisions are retained.
	// +optional
	Problem string `json:"problem,omitempty"`
	// partial is true if the rights of the reader do not cover all sets of the placement, so that more clusters may exist than are listed.
	// +optional
	Partial bool `json:"partial,omitempty"`
	// counts are the numbers of selected clusters, and of clusters that each filter excluded. They include all clusters that the reader may see, on
	// all pages.
	// +optional
	// +listType=atomic
	Counts []ExplainedCount `json:"counts,omitempty"`
	// clusters are the clusters in the sets of the placement, ordered by name, or the requested cluster. The limit of the request is the maximum
	// number.
	// +optional
	// +listType=atomic
	Clusters []ExplainedCluster `json:"clusters,omitempty"`
	// continue is set if there are more clusters. To get them, repeat the request with this value in the parameter continue.
	// +optional
	Continue string `json:"continue,omitempty"`
}

// ExplainedCount is a number of clusters with the same result.
type ExplainedCount struct {
	// filteredBy is the filter that excluded the clusters, as in clusters. It is empty for selected clusters.
	// +optional
	FilteredBy string `json:"filteredBy,omitempty"`
	// clusters is the number of clusters.
	Clusters int32 `json:"clusters"`
}

// ExplainedCluster explains why a cluster is selected or not.
type ExplainedCluster struct {
	// clusterName is the name of the ManagedCluster.
	ClusterName string `json:"clusterName"`
	// clusterSets are the sets of the placement that contain the cluster, ordered by name. Sets whose clusters the reader may not see are omitted.
	// +optional
	// +listType=atomic
	ClusterSets []string `json:"clusterSets,omitempty"`
	// chosen reports whether the placement selects the cluster.
	Chosen bool `json:"chosen"`
	// filteredBy is the filter that excluded the cluster. With ClusterSet, the cluster is in no set of the placement. With Deletion, it is being
	// deleted. With Predicate, it matches no predicate. With TaintToleration, it has a taint that is not tolerated. With Spread, it would violate a
	// spread constraint. With NumberOfClusters, other clusters rank higher. It is empty for a selected cluster, and if problem describes why no
	// cluster is added.
	// +optional
	FilteredBy string `json:"filteredBy,omitempty"`
	// message is a human-readable explanation.
	Message string `json:"message"`
	// mismatches are the predicates that the cluster does not match, if it matches none.
	// +optional
	// +listType=atomic
	Mismatches []PredicateMismatch `json:"mismatches,omitempty"`
	// scores are the scores by prioritizer, for a cluster that passes the predicates and the tolerations.
	// +optional
	// +listType=atomic
	Scores []ExplainedScore `json:"scores,omitempty"`
	// totalScore is the sum of weight times score. It is omitted if any of the scores is omitted.
	// +optional
	TotalScore *int64 `json:"totalScore,omitempty"`
	// rank is the position of the cluster among the eligible clusters that the reader may see, starting at 1. Clusters are ordered by totalScore, and
	// by name if it is equal. It is omitted if totalScore is omitted.
	// +optional
	Rank *int32 `json:"rank,omitempty"`
	// decisionGroupIndex is the index of the decision group of a selected cluster, starting at 0.
	// +optional
	DecisionGroupIndex *int32 `json:"decisionGroupIndex,omitempty"`
	// decisionGroupName is the name of the decision group of a selected cluster. It is empty if the group has no name.
	// +optional
	DecisionGroupName string `json:"decisionGroupName,omitempty"`
	// decisionName is the name of the PlacementDecision of a selected cluster.
	// +optional
	DecisionName string `json:"decisionName,omitempty"`
}

// PredicateMismatch represents a predicate that a cluster does not match.
type PredicateMismatch struct {
	// predicate is the index of the predicate in spec.predicates.
	Predicate int32 `json:"predicate"`
	// selector is the first field of the predicate's selector that does not match: labelSelector, claimSelector or celSelector.
	Selector string `json:"selector"`
}

// ExplainedScore is the score of a cluster by one prioritizer.
type ExplainedScore struct {
	// name is the name of the built-in prioritizer, or AddOn/<resourceName>/<scoreName>.
	Name string `json:"name"`
	// weight is the weight of the prioritizer, -10 to 10.
	Weight int32 `json:"weight"`
	// score is the score of the cluster, -100 to 100. Balance compares the cluster with all clusters of the hub, and ResourceAllocatableCPU and
	// ResourceAllocatableMemory compare it with all clusters of the placement. Their scores are omitted unless the rights of the reader cover the
	// sets of all these clusters.
	// +optional
	Score *int32 `json:"score,omitempty"`
}

// +k8s:conversion-gen:explicit-from=net/url.Values
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PlacementExplainOptions are the query parameters of the subresource explain of a placement.
type PlacementExplainOptions struct {
	metav1.TypeMeta `json:",inline"`

	// cluster is the name of the only ManagedCluster to explain. The default is all clusters.
	// +optional
	Cluster string `json:"cluster,omitempty"`
	// limit is the maximum number of clusters in the response, 1 to 10000. The default is 500.
	// +optional
	Limit int64 `json:"limit,omitempty"`
	// continue is status.continue of the previous page.
	// +optional
	Continue string `json:"continue,omitempty"`
}
