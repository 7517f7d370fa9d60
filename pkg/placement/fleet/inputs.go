// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import clusterv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1alpha1"

// Scores is the interface to AddOnPlacementScores.
type Scores interface {
	// Score returns the AddOnPlacementScore of a name in the namespace of a cluster, or nil. It must not be changed.
	Score(cluster, name string) *clusterv1alpha1.AddOnPlacementScore
}

// Load is the number of decisions of other placements for each cluster.
type Load interface {
	Count(cluster string) int
	// Most returns the highest count of all clusters, including those that are not relevant here.
	Most() int
}
