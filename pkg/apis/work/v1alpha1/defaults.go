// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	clusterv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1alpha1"
)

func init() {
	localSchemeBuilder.Register(RegisterDefaults)
}

// SetDefaults_LocalPlacementReference defaults to a rollout to all clusters at once. Clients written in Go send an empty strategy if the
// field is not set.
func SetDefaults_LocalPlacementReference(r *LocalPlacementReference) {
	if r.RolloutStrategy == (clusterv1alpha1.RolloutStrategy{}) {
		r.RolloutStrategy = clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.All, All: &clusterv1alpha1.RolloutAll{}}
	}
}
