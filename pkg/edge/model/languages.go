// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"github.com/clusterhub/clusterhub/pkg/apis/edge/validation"
	"github.com/clusterhub/clusterhub/pkg/constraint"
)

// Languages returns the parsers that validation needs to check constraints and version ranges.
func Languages() validation.Languages {
	return validation.Languages{
		Constraint: func(expression string) error {
			_, err := constraint.Parse([]string{expression})
			return err
		},
		Constraints: func(expressions []string) error {
			_, err := constraint.Parse(expressions)
			return err
		},
		VersionRange: func(text string) error {
			_, err := constraint.ParseVersionRange(text)
			return err
		},
	}
}
