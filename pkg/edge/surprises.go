// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clusterhub/clusterhub/pkg/constraint"
)

// Surprises are where constraints may do something else than their author meant, with the field that has them. What is said already may say
// better that nothing satisfies them.
func Surprises(constraints []string, field string, said []string) (warnings []string) {
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
