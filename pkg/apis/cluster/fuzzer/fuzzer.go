// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fuzzer makes random objects of cluster.open-cluster-management.io for the tests of conversion. They are valid
// where a version cannot express what is invalid.
package fuzzer

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeserializer "k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

// Funcs fill what plain randomness would fill with what no object has.
var Funcs = func(runtimeserializer.CodecFactory) []any {
	return []any{
		func(s *cluster.ManagedClusterSpec, c randfill.Continue) {
			c.FillNoCustom(s)
			if s.LeaseDurationSeconds == 0 {
				s.LeaseDurationSeconds = 60 // the default
			}
		},
		func(s *cluster.ManagedClusterSet, c randfill.Continue) {
			c.FillNoCustom(s)
			if label := s.Spec.ClusterSelector.ExclusiveLabel; label != nil && c.Intn(3) == 0 {
				// The implied label of the set-name selector, claimed by an explicit one.
				label.Key, label.Value = cluster.ClusterSetLabel, s.Name
			}
		},
		// What has a default is never empty.
		func(s *cluster.PlacementSpec, c randfill.Continue) {
			c.FillNoCustom(s)
			orDefault(&s.SortBy, cluster.PlacementSortByClusterName)
			orDefault(&s.ScoreRateLimit, "1m")
		},
		func(p *cluster.PrioritizerPolicy, c randfill.Continue) {
			c.FillNoCustom(p)
			orDefault(&p.Mode, cluster.PrioritizerPolicyModeAdditive)
		},
		func(p *cluster.PrioritizerConfig, c randfill.Continue) {
			c.FillNoCustom(p)
			if p.Weight == nil {
				p.Weight = new(int32(1))
			}
		},
		func(s *cluster.ScoreCoordinate, c randfill.Continue) {
			c.FillNoCustom(s)
			orDefault(&s.Type, cluster.ScoreCoordinateTypeBuiltIn)
		},
		func(s *cluster.SpreadConstraintsTerm, c randfill.Continue) {
			c.FillNoCustom(s)
			orDefault(&s.MaxSkew, 1)
			orDefault(&s.WhenUnsatisfiable, cluster.ScheduleAnyway)
		},
		func(t *cluster.Toleration, c randfill.Continue) {
			c.FillNoCustom(t)
			orDefault(&t.Operator, cluster.TolerationOpEqual)
		},
		func(s *cluster.GroupStrategy, c randfill.Continue) {
			c.FillNoCustom(s)
			orDefault(&s.ClustersPerDecisionGroup, intstr.FromString("100%"))
		},
		func(s *cluster.ManagedClusterSelector, c randfill.Continue) {
			switch c.Intn(3) {
			case 0:
				s.SelectorType = cluster.ExclusiveClusterSetLabel
			case 1:
				s.SelectorType = cluster.ExclusiveLabel
				s.ExclusiveLabel = &cluster.ManagedClusterLabel{}
				c.Fill(s.ExclusiveLabel)
			case 2:
				s.SelectorType = cluster.LabelSelector
				if c.Bool() {
					s.LabelSelector = &metav1.LabelSelector{}
					c.Fill(s.LabelSelector)
				}
			}
		},
	}
}

// orDefault gives a value that is zero its default.
func orDefault[T comparable](value *T, otherwise T) {
	var zero T
	if *value == zero {
		*value = otherwise
	}
}
