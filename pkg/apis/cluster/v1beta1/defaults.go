// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func addDefaultingFuncs(scheme *runtime.Scheme) error {
	return RegisterDefaults(scheme)
}

// SetDefaults_GroupStrategy fills in the length of groups: the generator knows no default for what is a number or a text.
// Clients written in Go send 0 where nothing was said.
func SetDefaults_GroupStrategy(s *GroupStrategy) {
	if s.ClustersPerDecisionGroup == intstr.FromInt32(0) {
		s.ClustersPerDecisionGroup = intstr.FromString("100%")
	}
}
