// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PlacementExplanation says why a Placement chooses the clusters that it chooses, and why not the others. The hub computes it when it is
// read, as the subresource explain of a placement, and stores it nowhere. It tells only of clusters that the reader may see, as
// managedclusters of clusterview.open-cluster-management.io shows them.
type PlacementExplanation struct {
	metav1.TypeMeta
	// metadata has the name and the namespace of the Placement, and the UID and the generation of it that is explained.
	metav1.ObjectMeta

	// status is the explanation.
	Status PlacementExplanationStatus
}

// PlacementExplanationStatus is the result of the placement for the current state of the hub.
type PlacementExplanationStatus struct {
	// problem is why nothing new is chosen, if that is so: then the clusters of the last decisions are kept.
	Problem string
	// partial is true if the rights of the reader do not cover all sets that the placement chooses from: there may be more clusters than
	// are listed.
	Partial bool
	// counts say how many clusters are chosen, and how many fell out by what. They count what the reader may see, on all pages.
	Counts []ExplainedCount
	// clusters are the clusters in the sets of the placement, ordered by name, or the one that was requested. At most as many as the limit
	// of the request.
	Clusters []ExplainedCluster
	// continue is set if there are more clusters: repeat the request with this value as the parameter continue.
	Continue string
}

// ExplainedCount is a number of clusters.
type ExplainedCount struct {
	// filteredBy is the filter that excluded them, as in clusters; empty for chosen clusters.
	FilteredBy string
	// clusters is how many.
	Clusters int32
}

// ExplainedCluster says of one cluster why it is chosen, or not.
type ExplainedCluster struct {
	// clusterName is the name of the ManagedCluster.
	ClusterName string
	// clusterSets are the sets of the placement that the cluster is in, ordered by name: those whose clusters the reader may see.
	ClusterSets []string
	// chosen says whether the placement chooses the cluster.
	Chosen bool
	// filteredBy is the filter that excluded the cluster. ClusterSet: it is in no set of the placement. Deletion: it is being deleted.
	// Predicate: it matches no predicate. TaintToleration: it has a taint that is not tolerated. Spread: it would break a spread
	// constraint. NumberOfClusters: other clusters rank higher. Empty for a chosen cluster, and if problem states why no cluster is added.
	FilteredBy string
	// message says it in words.
	Message string
	// mismatches are the predicates that the cluster does not match, if it matches none.
	Mismatches []PredicateMismatch
	// scores are those of each prioritizer, for a cluster that has passed the predicates and the taints.
	Scores []ExplainedScore
	// totalScore is the sum of weight times score. It is left out where one of the scores is.
	TotalScore *int64
	// rank is the place of the cluster among those that have passed and that the reader sees, from 1 on: by totalScore, and by name where
	// it is equal. It is left out where totalScore is.
	Rank *int32
	// decisionGroupIndex is the index of the decision group of a chosen cluster, from 0 on.
	DecisionGroupIndex *int32
	// decisionGroupName is the name of that group, empty for one without a name.
	DecisionGroupName string
	// decisionName is the name of the PlacementDecision of a chosen cluster.
	DecisionName string
}

// PredicateMismatch is a predicate that a cluster does not match.
type PredicateMismatch struct {
	// predicate is its index in spec.predicates.
	Predicate int32
	// selector is the first part of it that does not match: labelSelector, claimSelector or celSelector.
	Selector string
}

// ExplainedScore is the score of a cluster by one prioritizer.
type ExplainedScore struct {
	// name is the name of the built-in prioritizer, or AddOn/<resourceName>/<scoreName>.
	Name string
	// weight is the weight of the prioritizer, -10 to 10.
	Weight int32
	// score is from -100 to 100. Balance compares a cluster with all of the hub, and the ResourceAllocatable ones compare it with those of the
	// placement: they are left out unless the rights of the reader cover the sets of all these.
	Score *int32
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PlacementExplainOptions are the query parameters of an explanation.
type PlacementExplainOptions struct {
	metav1.TypeMeta

	// cluster is the name of the one ManagedCluster to explain. The default is all.
	Cluster string
	// limit is the maximum number of clusters in the response, 1 to 10000. The default is 500.
	Limit int64
	// continue is status.continue of the page before.
	Continue string
}
