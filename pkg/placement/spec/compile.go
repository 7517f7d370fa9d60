// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/placement/fleet"
)

// The names of the plugins in conditions and explanations.
const (
	PluginPredicate   = "Predicate"
	PluginTaint       = "TaintToleration"
	pluginPrioritizer = "Prioritizer"
	PluginSpread      = "Spread"
	pluginGroups      = "DecisionStrategy"
	PluginNumber      = "NumberOfClusters"
)

// defaultScoreRateLimit is the default of the API.
const defaultScoreRateLimit = time.Minute

// Program is the compiled spec of a placement. It must not be changed. It is safe for concurrent use, and valid as long as the spec does not change.
type Program struct {
	ClusterSets []string
	// Number is nil for all.
	Number         *int32
	Predicates     []ClusterSelector
	Tolerations    []clusterv1beta1.Toleration
	Prioritizers   []Prioritizer
	Spread         []clusterv1beta1.SpreadConstraintsTerm
	Groups         []GroupSelector
	PerGroup       GroupLength
	ByScore        bool
	ScoreRateLimit time.Duration

	// Reads are the AddOnPlacementScores that predicates read; "" is any.
	Reads map[string]bool
	// Misconfigured is the reason why the spec is invalid, prefixed with the name of the plugin.
	Misconfigured error
}

// GroupSelector is a decision group with the clusters that belong to it.
type GroupSelector struct {
	Name string
	ClusterSelector
}

// Matches needs nothing but the cluster: groups have no CEL.
func (g *GroupSelector) Matches(c *fleet.ClusterInfo) bool {
	return g.mismatch(context.Background(), c, nil, nil) == AllParts
}

// GroupLength is a number, or a percentage if percent is set.
type GroupLength struct {
	Value   int
	Percent bool
}

// Misconfigured returns the program of a spec that cannot be compiled for a reason: it keeps the existing decisions.
func Misconfigured(spec *clusterv1beta1.PlacementSpec, reason error) *Program {
	return &Program{ClusterSets: spec.ClusterSets, Misconfigured: reason}
}

// Compile compiles a spec. For an invalid one it returns a program that keeps the existing decisions.
func Compile(spec *clusterv1beta1.PlacementSpec) *Program {
	p := &Program{
		ClusterSets: spec.ClusterSets,
		Number:      spec.NumberOfClusters,
		Tolerations: spec.Tolerations,
		ByScore:     spec.SortBy == clusterv1beta1.PlacementSortByScore,
		Reads:       map[string]bool{},
	}
	for _, step := range []struct {
		plugin  string
		compile func(*clusterv1beta1.PlacementSpec) error
	}{
		{PluginPredicate, p.compilePredicates},
		{PluginTaint, p.compileTolerations},
		{pluginPrioritizer, p.compilePrioritizers},
		{PluginNumber, p.compileNumber},
		{PluginSpread, p.compileSpread},
		{pluginGroups, p.compileGroups},
	} {
		if err := step.compile(spec); err != nil {
			p.Misconfigured = fmt.Errorf("%s:%w", step.plugin, err)
			break
		}
	}
	return p
}

func (p *Program) compilePredicates(spec *clusterv1beta1.PlacementSpec) error {
	if len(spec.Predicates) > maxPredicates {
		return fmt.Errorf("expected at most %d predicates, got %d", maxPredicates, len(spec.Predicates))
	}
	for i := range spec.Predicates {
		required := &spec.Predicates[i].RequiredClusterSelector
		s, err := compileSelector(&required.LabelSelector, &required.ClaimSelector)
		if err != nil {
			return err
		}
		for _, text := range required.CelSelector.CelExpressions {
			e, err := compileExpression(text, func(resource string) { p.Reads[resource] = true })
			if err != nil {
				return err
			}
			s.Expressions = append(s.Expressions, e)
		}
		p.Predicates = append(p.Predicates, s)
	}
	return nil
}

// HasCEL reports whether a run may be expensive.
func (p *Program) HasCEL() bool {
	return slices.ContainsFunc(p.Predicates, func(s ClusterSelector) bool { return len(s.Expressions) > 0 })
}

func (p *Program) compileTolerations(spec *clusterv1beta1.PlacementSpec) error {
	for i := range spec.Tolerations {
		if err := contradiction(&spec.Tolerations[i]); err != nil {
			return err
		}
	}
	return nil
}

func (p *Program) compileNumber(spec *clusterv1beta1.PlacementSpec) error {
	if spec.NumberOfClusters != nil && *spec.NumberOfClusters < 0 {
		return fmt.Errorf("expected a number of clusters of 0 or more, got %d", *spec.NumberOfClusters)
	}
	p.ScoreRateLimit = defaultScoreRateLimit
	if spec.ScoreRateLimit != "" {
		limit, err := time.ParseDuration(spec.ScoreRateLimit)
		if err != nil || limit < 0 {
			return fmt.Errorf("expected a scoreRateLimit such as 30s, got %q", spec.ScoreRateLimit)
		}
		p.ScoreRateLimit = limit
	}
	return nil
}

func (p *Program) compileSpread(spec *clusterv1beta1.PlacementSpec) error {
	for _, c := range spec.SpreadPolicy.SpreadConstraints {
		switch c.TopologyKeyType {
		case clusterv1beta1.TopologyKeyTypeLabel, clusterv1beta1.TopologyKeyTypeClaim:
		default:
			return fmt.Errorf("expected the topologyKeyType Label or Claim, got %q", c.TopologyKeyType)
		}
		c.MaxSkew = max(c.MaxSkew, 1)
		p.Spread = append(p.Spread, c)
	}
	return nil
}

func (p *Program) compileGroups(spec *clusterv1beta1.PlacementSpec) (err error) {
	strategy := &spec.DecisionStrategy.GroupStrategy
	for i := range strategy.DecisionGroups {
		g := &strategy.DecisionGroups[i]
		s, err := compileSelector(&g.ClusterSelector.LabelSelector, &g.ClusterSelector.ClaimSelector)
		if err != nil {
			return err
		}
		p.Groups = append(p.Groups, GroupSelector{g.GroupName, s})
	}
	p.PerGroup, err = compileLength(strategy.ClustersPerDecisionGroup)
	return err
}

func compileLength(length intstr.IntOrString) (GroupLength, error) {
	if length.Type == intstr.Int {
		return GroupLength{Value: int(length.IntVal)}, nil
	}
	text, percent := strings.CutSuffix(length.StrVal, "%")
	value, err := strconv.ParseInt(text, 10, 32)
	switch {
	case length.StrVal == "":
		return GroupLength{}, nil
	case err != nil || value < 0 || (percent && value > 100):
		return GroupLength{}, fmt.Errorf("expected clustersPerDecisionGroup to be a number or a percentage, got %q", length.StrVal)
	}
	return GroupLength{Value: int(value), Percent: percent}, nil
}

// Of returns the length of groups for a number of selected clusters. It is long enough that there are at most so many groups.
func (l GroupLength) Of(selected, most int) int {
	length := l.Value
	if l.Percent {
		length = (selected*l.Value + 99) / 100
	}
	if length <= 0 || length > selected {
		return selected
	}
	return max(length, (selected+most-1)/most)
}

// TopologyValue returns the topology of a cluster for a constraint. A cluster without the label or the claim is in none.
func TopologyValue(c *clusterv1beta1.SpreadConstraintsTerm, cluster *fleet.ClusterInfo) (value string, found bool) {
	if c.TopologyKeyType == clusterv1beta1.TopologyKeyTypeClaim {
		value, found = cluster.Claims[c.TopologyKey]
	} else {
		value, found = cluster.Object.Labels[c.TopologyKey]
	}
	return value, found
}
