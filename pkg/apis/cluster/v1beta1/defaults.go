// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"k8s.io/apimachinery/pkg/util/intstr"
)

func init() {
	localSchemeBuilder.Register(RegisterDefaults)
}

// SetDefaults_GroupStrategy sets the default length of groups: the generator has no defaults for a field that is a number or a string.
// Clients written in Go send 0 if the field is not set.
func SetDefaults_GroupStrategy(s *GroupStrategy) {
	if s.ClustersPerDecisionGroup == intstr.FromInt32(0) {
		s.ClustersPerDecisionGroup = intstr.FromString("100%")
	}
}
