// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package irsa

import (
	"fmt"
	"regexp"
)

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

// Approve says whether a pattern matches the cluster's ARN.
func (p Patterns) Approve(cluster Cluster) bool {
	for _, pattern := range p {
		if pattern.MatchString(cluster.String()) {
			return true
		}
	}
	return false
}
