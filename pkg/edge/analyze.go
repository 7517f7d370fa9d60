// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"fmt"
	"slices"
	"strings"

	api "github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/constraint"
)

// Analysis is what can be said of a policy before there is any node.
type Analysis struct {
	// Nothing says that no node can satisfy the constraints, of whatever scope.
	Nothing bool
	// NamespaceScopedExcluded says that namespace-scoped nodes could satisfy the constraints, but not those of them that the policy can be
	// deployed to, because of the namespace that it is deployed to.
	NamespaceScopedExcluded bool
	// ClusterScopedExcluded says that no cluster-scoped node can satisfy the constraints. It is a fault only together with the other one:
	// what the constraints say of the scope, the author has wanted.
	ClusterScopedExcluded bool
	// NeedsNamespace says that every version names several namespaces in its archive, and the policy none.
	NeedsNamespace bool
	// Targets are the namespaces to which it is deployed, as far as policy and services name them.
	Targets []string
	// Embedded says that it is the archives of the services that name them, and not the policy.
	Embedded bool
}

// Analyze asks two questions of a policy: can a node satisfy the constraints, of policy and service together, that is namespace-scoped in the
// namespace that the policy deploys to? And one that is cluster-scoped, in any namespace? All other properties can be anything.
//
// A fault is only what comes of the namespace: constraints that speak of the scope alone say what their author wants. It is about policies;
// patterns have no constraints.
func Analyze(spec DeploymentSpec) (Analysis, error) {
	result := Analysis{ClusterScopedExcluded: true, NeedsNamespace: true}
	if _, err := constraint.Parse(spec.Policy.Constraints); err != nil {
		return Analysis{}, fmt.Errorf("constraints: %w", err)
	}
	var wanted, possible bool
	for _, c := range considered(spec) {
		if c.several {
			continue
		}
		result.NeedsNamespace = false
		constraints, err := constraint.Parse(slices.Concat(spec.Policy.Constraints, c.constraints))
		if err != nil {
			// Together they are more than can be read. Each alone is asked when it is decided.
			if constraints, err = constraint.Parse(spec.Policy.Constraints); err != nil {
				return Analysis{}, fmt.Errorf("constraints: %w", err)
			}
		}
		free, err := could(constraints, NamespaceScoped, "")
		if err != nil {
			return Analysis{}, err
		}
		there, err := could(constraints, NamespaceScoped, c.target)
		if err != nil {
			return Analysis{}, err
		}
		cluster, err := could(constraints, ClusterScoped, "")
		if err != nil {
			return Analysis{}, err
		}
		wanted, possible = wanted || free, possible || there
		if cluster {
			result.ClusterScopedExcluded = false
		}
		if c.target != "" && !slices.Contains(result.Targets, c.target) {
			result.Targets = append(result.Targets, c.target)
			result.Embedded = spec.ClusterNamespace == ""
		}
	}
	slices.Sort(result.Targets)
	result.NamespaceScopedExcluded = wanted && !possible
	result.Nothing = !possible && result.ClusterScopedExcluded
	return result, nil
}

// hypothesis is a version of the service, as far as it matters here.
type hypothesis struct {
	constraints []string
	target      string
	several     bool
}

// considered are the versions that the policy names and that are there. Without any, the policy is considered alone.
func considered(spec DeploymentSpec) []hypothesis {
	var list []hypothesis
	for i := range spec.Services {
		s := &spec.Services[i]
		if !s.ForClusters || !slices.ContainsFunc(spec.Choices, func(c Choice) bool { return c.Version == s.Version }) {
			continue
		}
		h := hypothesis{constraints: s.Policy.Constraints, target: spec.ClusterNamespace}
		if h.target == "" && s.Contents != nil {
			embedded, certain := s.Contents.Embedded()
			h.target, h.several = embedded, !certain
		}
		list = append(list, h)
	}
	if len(list) == 0 {
		list = append(list, hypothesis{target: spec.ClusterNamespace})
	}
	return list
}

// could says whether a node of this scope, in this namespace or in any, could satisfy the constraints.
func could(constraints *constraint.Constraints, scope Scope, namespace string) (bool, error) {
	facts := Facts{Scope: scope, Namespace: namespace}
	fixed, err := stamp(nil, facts.properties(Cluster))
	if err != nil {
		return false, err
	}
	// A namespace is one word, so no node is in two of them.
	return constraints.Possible(fixed, api.PropertyKubernetesNamespace), nil
}

// AskDeployCheck ends warnings that say that nothing can be deployed. A deploy check leaves it out: it is what was asked.
const AskDeployCheck = "; 'kubectl hub deploycheck' says what would be deployed where"

// Warning is what the author is told, or empty.
func (a *Analysis) Warning() string {
	target := ""
	if len(a.Targets) > 0 {
		by := "clusterNamespace"
		if a.Embedded {
			by = "the archive of the service"
		}
		target = fmt.Sprintf("%s (by %s)", strings.Join(a.Targets, ", "), by)
	}
	switch {
	case a.NeedsNamespace:
		return "nothing can be deployed: the archive of the service names several namespaces, and clusterNamespace does not say which" + AskDeployCheck
	case a.Nothing && a.NamespaceScopedExcluded:
		return fmt.Sprintf("nothing can be deployed: it goes to namespace %s, the constraints exclude namespace-scoped nodes there, and they exclude all cluster-scoped nodes", target) + AskDeployCheck
	case a.Nothing:
		return "nothing can be deployed: no node can satisfy the constraints" + AskDeployCheck
	case a.NamespaceScopedExcluded:
		return fmt.Sprintf("all namespace-scoped nodes are excluded: it goes to namespace %s, and the constraints exclude nodes there. Cluster-scoped nodes that satisfy the constraints still get it, in that namespace", target) + AskDeployCheck
	}
	return ""
}
