// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1alpha1"
)

func addDefaultingFuncs(scheme *runtime.Scheme) error {
	return RegisterDefaults(scheme)
}

// SetDefaults_LocalPlacementReference rolls out to all clusters at once where nothing else was said. Clients written in Go send an
// empty strategy then.
func SetDefaults_LocalPlacementReference(r *LocalPlacementReference) {
	if r.RolloutStrategy == (clusterv1alpha1.RolloutStrategy{}) {
		r.RolloutStrategy = clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.All, All: &clusterv1alpha1.RolloutAll{}}
	}
}
