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

// Patterns match the ARNs that are approved without an admin. Without a pattern, nothing is approved.
type Patterns []*regexp.Regexp

// ParsePatterns parses regular expressions, each of which must match a whole ARN.
func ParsePatterns(expressions []string) (Patterns, error) {
	patterns := make(Patterns, len(expressions))
	for i, expression := range expressions {
		// It is compiled by itself first: "a)|(b" is valid only between the parentheses that follow, and would match a part.
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

// Names returns the names for which an ARN is approved. Each pattern that matches the ARN contributes one: the match of its group "name", or, without
// such a group, the name of the EKS cluster. The author of a ManagedCluster writes its ARN, so a pattern only approves a name that follows from the
// ARN.
func (p Patterns) Names(cluster ClusterARN) (names []string) {
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

// Approve reports whether a pattern approves the ARN for a ManagedCluster of this name.
func (p Patterns) Approve(cluster ClusterARN, name string) bool {
	return slices.Contains(p.Names(cluster), name)
}
