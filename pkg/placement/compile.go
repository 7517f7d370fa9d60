// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	clusterv1beta1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
)

// The names of the plugins in conditions and explanations.
const (
	pluginPredicate   = "Predicate"
	pluginTaint       = "TaintToleration"
	pluginPrioritizer = "Prioritizer"
	pluginSpread      = "Spread"
	pluginGroups      = "DecisionStrategy"
	pluginNumber      = "NumberOfClusters"
)

const (
	// defaultScoreRateLimit is the default of the API.
	defaultScoreRateLimit = time.Minute
	// sliceSize is the maximum number of clusters in one PlacementDecision.
	sliceSize = 100
	// maxGroups is the maximum number of groups in the status.
	maxGroups = 2048
	// statusBytes is the maximum size of all groups in the status: less than the room for the status of a Placement (pkg/admission/objectsize),
	// since there are conditions as well. groupBytes is the size of one group in JSON, without its name and those of its decisions.
	statusBytes = 160 << 10
	groupBytes  = len(`{"decisionGroupIndex":1234,"decisionGroupName":"","decisions":[],"clusterCount":1234567},`)
)

// Program is the compiled spec of a placement. It is safe for concurrent use, and valid as long as the spec does not change.
type Program struct {
	clusterSets []string
	// number is nil for all.
	number         *int32
	predicates     []clusterSelector
	tolerations    []clusterv1beta1.Toleration
	prioritizers   []prioritizer
	spread         []clusterv1beta1.SpreadConstraintsTerm
	groups         []groupSelector
	perGroup       groupLength
	byScore        bool
	scoreRateLimit time.Duration

	// reads are the AddOnPlacementScores that predicates read; "" is any.
	reads map[string]bool
	// misconfigured is the reason why the spec is invalid, prefixed with the name of the plugin.
	misconfigured error
}

type groupSelector struct {
	name string
	clusterSelector
}

// matches needs nothing but the cluster: groups have no CEL.
func (g *groupSelector) matches(c *ClusterInfo) bool {
	return g.mismatch(context.Background(), c, nil, nil) == allParts
}

// groupLength is a number, or a percentage if percent is set.
type groupLength struct {
	value   int
	percent bool
}

// Compile compiles a spec. For an invalid one it returns a program that keeps the existing decisions.
func Compile(spec *clusterv1beta1.PlacementSpec) *Program {
	p := &Program{
		clusterSets: spec.ClusterSets,
		number:      spec.NumberOfClusters,
		tolerations: spec.Tolerations,
		byScore:     spec.SortBy == clusterv1beta1.PlacementSortByScore,
		reads:       map[string]bool{},
	}
	for _, step := range []struct {
		plugin  string
		compile func(*clusterv1beta1.PlacementSpec) error
	}{
		{pluginPredicate, p.compilePredicates},
		{pluginTaint, p.compileTolerations},
		{pluginPrioritizer, p.compilePrioritizers},
		{pluginNumber, p.compileNumber},
		{pluginSpread, p.compileSpread},
		{pluginGroups, p.compileGroups},
	} {
		if err := step.compile(spec); err != nil {
			p.misconfigured = fmt.Errorf("%s:%w", step.plugin, err)
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
			e, err := compileExpression(text, func(resource string) { p.reads[resource] = true })
			if err != nil {
				return err
			}
			s.expressions = append(s.expressions, e)
		}
		p.predicates = append(p.predicates, s)
	}
	return nil
}

// hasCEL reports whether a run may be expensive.
func (p *Program) hasCEL() bool {
	return slices.ContainsFunc(p.predicates, func(s clusterSelector) bool { return len(s.expressions) > 0 })
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
	p.scoreRateLimit = defaultScoreRateLimit
	if spec.ScoreRateLimit != "" {
		limit, err := time.ParseDuration(spec.ScoreRateLimit)
		if err != nil || limit < 0 {
			return fmt.Errorf("expected a scoreRateLimit such as 30s, got %q", spec.ScoreRateLimit)
		}
		p.scoreRateLimit = limit
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
		p.spread = append(p.spread, c)
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
		p.groups = append(p.groups, groupSelector{g.GroupName, s})
	}
	p.perGroup, err = compileLength(strategy.ClustersPerDecisionGroup)
	return err
}

func compileLength(length intstr.IntOrString) (groupLength, error) {
	if length.Type == intstr.Int {
		return groupLength{value: int(length.IntVal)}, nil
	}
	text, percent := strings.CutSuffix(length.StrVal, "%")
	value, err := strconv.ParseInt(text, 10, 32)
	switch {
	case length.StrVal == "":
		return groupLength{}, nil
	case err != nil || value < 0 || (percent && value > 100):
		return groupLength{}, fmt.Errorf("expected clustersPerDecisionGroup to be a number or a percentage, got %q", length.StrVal)
	}
	return groupLength{value: int(value), percent: percent}, nil
}

// of returns the length of groups for a number of selected clusters. It is long enough that there are at most so many groups.
func (l groupLength) of(selected, most int) int {
	length := l.value
	if l.percent {
		length = (selected*l.value + 99) / 100
	}
	if length <= 0 || length > selected {
		return selected
	}
	return max(length, (selected+most-1)/most)
}

// prioritizer is one way to score clusters.
type prioritizer struct {
	// name is the name in results: the name of a built-in prioritizer, or AddOn/<resource>/<score>.
	name, resource, score string
	weight                int64
}

func (p *Program) compilePrioritizers(spec *clusterv1beta1.PlacementSpec) error {
	policy := &spec.PrioritizerPolicy
	switch policy.Mode {
	case "", clusterv1beta1.PrioritizerPolicyModeAdditive:
		p.setPrioritizer(prioritizer{name: clusterv1beta1.PrioritizerBalance, weight: 1})
		p.setPrioritizer(prioritizer{name: clusterv1beta1.PrioritizerSteady, weight: 1})
	case clusterv1beta1.PrioritizerPolicyModeExact:
	default:
		return fmt.Errorf("incorrect prioritizer policy mode: %s", policy.Mode)
	}
	for i := range policy.Configurations {
		c := &policy.Configurations[i]
		if c.ScoreCoordinate == nil {
			return errors.New("scoreCoordinate field is required")
		}
		one := prioritizer{name: c.ScoreCoordinate.BuiltIn, weight: 1}
		if c.Weight != nil {
			one.weight = int64(*c.Weight)
		}
		switch c.ScoreCoordinate.Type {
		case "", clusterv1beta1.ScoreCoordinateTypeBuiltIn:
			switch one.name {
			case clusterv1beta1.PrioritizerBalance, clusterv1beta1.PrioritizerSteady,
				clusterv1beta1.PrioritizerResourceAllocatableCPU, clusterv1beta1.PrioritizerResourceAllocatableMemory:
			default:
				return fmt.Errorf("incorrect builtin prioritizer: %s", one.name)
			}
		default:
			addOn := c.ScoreCoordinate.AddOn
			if addOn == nil {
				return errors.New("addOn should not be empty")
			}
			one.resource, one.score = addOn.ResourceName, addOn.ScoreName
			one.name = "AddOn/" + one.resource + "/" + one.score
		}
		p.setPrioritizer(one)
	}
	return nil
}

// setPrioritizer sets the weight of a prioritizer; the last one counts. One with weight 0 is not used.
func (p *Program) setPrioritizer(one prioritizer) {
	for i := range p.prioritizers {
		if p.prioritizers[i].name == one.name {
			p.prioritizers[i].weight = one.weight
			return
		}
	}
	p.prioritizers = append(p.prioritizers, one)
}
