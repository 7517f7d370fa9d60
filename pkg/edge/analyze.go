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

// Analysis holds the facts about a policy that are known before any node exists.
type Analysis struct {
	// Nothing means that no node can satisfy the constraints, whatever its scope.
	Nothing bool
	// NamespaceScopedExcluded means that some namespace-scoped nodes could satisfy the constraints, but none that the policy can be deployed to,
	// because of its target namespace.
	NamespaceScopedExcluded bool
	// ClusterScopedExcluded means that no cluster-scoped node can satisfy the constraints. It is a fault only together with NamespaceScopedExcluded:
	// constraints on the scope itself are intended by the author.
	ClusterScopedExcluded bool
	// NeedsNamespace means that every version names several namespaces in its archive, and the policy none.
	NeedsNamespace bool
	// Targets are the target namespaces that policy and services name.
	Targets []string
	// Embedded means that the archives of the services name them, and not the policy.
	Embedded bool
}

// Analyze answers two questions about a policy: can any namespace-scoped node in the target namespace satisfy the constraints of policy and service
// together? And can any cluster-scoped node, in any namespace? All other properties may have any value.
//
// Only exclusions by the namespace count as faults: constraints on the scope itself are intended by their author. It is for policies; patterns have
// no constraints.
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
			// Together they are too large to be parsed. Decide evaluates each of them separately.
			constraints, err = constraint.Parse(spec.Policy.Constraints)
			if err != nil {
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

// hypothesis is the part of a version of the service that matters here.
type hypothesis struct {
	constraints []string
	target      string
	several     bool
}

// considered returns the existing versions that the policy names. If no such version exists, the policy is considered by itself.
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

// could reports whether a node of this scope, in this namespace or in any, could satisfy the constraints.
func could(constraints *constraint.Constraints, scope Scope, namespace string) (bool, error) {
	facts := Facts{Scope: scope, Namespace: namespace}
	fixed, err := stamp(nil, facts.properties(Cluster))
	if err != nil {
		return false, err
	}
	// A namespace is one word, so no node is in two of them.
	return constraints.Possible(fixed, api.PropertyKubernetesNamespace), nil
}

// AskDeployCheck ends warnings that nothing can be deployed. A deploy check leaves it out.
const AskDeployCheck = "; 'kubectl hub deploycheck' says what would be deployed where"

// Warning returns a warning for the author, or "".
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
