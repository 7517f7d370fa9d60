// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package irsa

import (
	"fmt"
	"regexp"
	"slices"
)

// nameGroup is the group of a pattern that matches the name of the ManagedCluster.
const nameGroup = "name"

// Patterns are those of ARNs that are approved without an admin. No pattern approves nothing.
type Patterns []*regexp.Regexp

// ParsePatterns reads regular expressions, each of which must match an ARN from its first to its last character.
func ParsePatterns(expressions []string) (Patterns, error) {
	patterns := make(Patterns, len(expressions))
	for i, expression := range expressions {
		// By itself: "a)|(b" is one only between the brackets that follow, and would match a part.
		if _, err := regexp.Compile(expression); err != nil {
			return nil, fmt.Errorf("the ARN pattern %q: %w", expression, err)
		}
		whole, err := regexp.Compile(`\A(?:` + expression + `)\z`)
		if err != nil {
			return nil, fmt.Errorf("the ARN pattern %q: %w", expression, err)
		}
		patterns[i] = whole
	}
	return patterns, nil
}

// Names are the names for which an ARN is approved. Each pattern that matches the ARN gives one: what its group "name"
// matches, or, without such a group, the name of the EKS cluster. The author of a ManagedCluster writes its ARN, so a
// pattern says something only of a name that follows from it.
func (p Patterns) Names(cluster Cluster) (names []string) {
	for _, pattern := range p {
		match := pattern.FindStringSubmatch(cluster.String())
		if match == nil {
			continue
		}
		name := cluster.Name
		if group := pattern.SubexpIndex(nameGroup); group >= 0 {
			name = match[group]
		}
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Approve says whether a pattern approves the ARN for a ManagedCluster of this name.
func (p Patterns) Approve(cluster Cluster, name string) bool {
	return slices.Contains(p.Names(cluster), name)
}
