// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"errors"
	"fmt"

	clusterv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1alpha1"
	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/placement/fleet"
)

// Prioritizer is one way to score clusters.
type Prioritizer struct {
	// Name is the name in results: the name of a built-in prioritizer, or AddOn/<resource>/<score>.
	Name, Resource, Score string
	Weight                int64
}

func (p *Program) compilePrioritizers(spec *clusterv1beta1.PlacementSpec) error {
	policy := &spec.PrioritizerPolicy
	switch policy.Mode {
	case "", clusterv1beta1.PrioritizerPolicyModeAdditive:
		p.setPrioritizer(Prioritizer{Name: clusterv1beta1.PrioritizerBalance, Weight: 1})
		p.setPrioritizer(Prioritizer{Name: clusterv1beta1.PrioritizerSteady, Weight: 1})
	case clusterv1beta1.PrioritizerPolicyModeExact:
	default:
		return fmt.Errorf("incorrect prioritizer policy mode: %s", policy.Mode)
	}
	for i := range policy.Configurations {
		c := &policy.Configurations[i]
		if c.ScoreCoordinate == nil {
			return errors.New("scoreCoordinate field is required")
		}
		one := Prioritizer{Name: c.ScoreCoordinate.BuiltIn, Weight: 1}
		if c.Weight != nil {
			one.Weight = int64(*c.Weight)
		}
		switch c.ScoreCoordinate.Type {
		case "", clusterv1beta1.ScoreCoordinateTypeBuiltIn:
			switch one.Name {
			case clusterv1beta1.PrioritizerBalance, clusterv1beta1.PrioritizerSteady,
				clusterv1beta1.PrioritizerResourceAllocatableCPU, clusterv1beta1.PrioritizerResourceAllocatableMemory:
			default:
				return fmt.Errorf("incorrect builtin prioritizer: %s", one.Name)
			}
		default:
			addOn := c.ScoreCoordinate.AddOn
			if addOn == nil {
				return errors.New("addOn should not be empty")
			}
			one.Resource, one.Score = addOn.ResourceName, addOn.ScoreName
			one.Name = "AddOn/" + one.Resource + "/" + one.Score
		}
		p.setPrioritizer(one)
	}
	return nil
}

// setPrioritizer sets the weight of a prioritizer; the last one counts. One with weight 0 is not used.
func (p *Program) setPrioritizer(one Prioritizer) {
	for i := range p.Prioritizers {
		if p.Prioritizers[i].Name == one.Name {
			p.Prioritizers[i].Weight = one.Weight
			return
		}
	}
	p.Prioritizers = append(p.Prioritizers, one)
}

// AmountOf returns the resource by which a prioritizer scores clusters, if it does.
func (p *Prioritizer) AmountOf() (of func(*fleet.ClusterInfo) fleet.Amount, isResource bool) {
	switch {
	case p.Resource != "":
	case p.Name == clusterv1beta1.PrioritizerResourceAllocatableCPU:
		return func(c *fleet.ClusterInfo) fleet.Amount { return c.CPU }, true
	case p.Name == clusterv1beta1.PrioritizerResourceAllocatableMemory:
		return func(c *fleet.ClusterInfo) fleet.Amount { return c.Memory }, true
	}
	return nil, false
}

// ScoreOf returns the score that a prioritizer reads from an AddOnPlacementScore, which may be nil.
func (p *Prioritizer) ScoreOf(object *clusterv1alpha1.AddOnPlacementScore) int64 {
	if object == nil {
		return 0
	}
	for i := range object.Status.Scores {
		if item := &object.Status.Scores[i]; item.Name == p.Score {
			return int64(min(max(item.Value, -100), 100))
		}
	}
	return 0
}

// MetricName returns the name of a prioritizer in metrics: users choose the names of scores.
func (p *Prioritizer) MetricName() string {
	if p.Resource != "" {
		return "AddOn"
	}
	return p.Name
}
