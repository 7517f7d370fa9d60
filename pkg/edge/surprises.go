// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clusterhub/clusterhub/pkg/constraint"
)

// ConstraintWarnings returns warnings where constraints may do something else than their author intended, with their field. A warning in said that nothing can
// be deployed replaces the one that nothing satisfies the constraints.
func ConstraintWarnings(constraints []string, field string, said []string) (warnings []string) {
	for _, w := range constraint.Lint(constraints) {
		if w.Code == constraint.Unsatisfiable && slices.ContainsFunc(said, func(text string) bool { return strings.HasPrefix(text, "nothing can be deployed") }) {
			continue
		}
		at := field
		if w.Expression >= 0 {
			at = fmt.Sprintf("%s[%d]", field, w.Expression)
		}
		warnings = append(warnings, at+": "+w.Message)
	}
	return warnings
}
