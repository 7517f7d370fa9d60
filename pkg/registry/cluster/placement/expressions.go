// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/validation"
	"github.com/clusterhub/clusterhub/pkg/placement/spec"
)

func validate(p *cluster.Placement) field.ErrorList {
	return compiled(validation.ValidatePlacement(p), p, &cluster.Placement{})
}

func validateUpdate(p, old *cluster.Placement) field.ErrorList {
	return compiled(validation.ValidatePlacementUpdate(p, old), p, old)
}

// compiled rejects expressions that do not compile, once everything else is valid, so that their number and length are limited. Existing expressions
// are allowed, so that a placement can be changed after the CEL libraries have changed.
func compiled(errs field.ErrorList, p, old *cluster.Placement) field.ErrorList {
	if len(errs) > 0 {
		return errs
	}
	known := sets.New[string]()
	for i := range old.Spec.Predicates {
		known.Insert(old.Spec.Predicates[i].RequiredClusterSelector.CelSelector.CelExpressions...)
	}
	path := field.NewPath("spec", "predicates")
	for i := range p.Spec.Predicates {
		at := path.Index(i).Child("requiredClusterSelector", "celSelector", "celExpressions")
		for j, expression := range p.Spec.Predicates[i].RequiredClusterSelector.CelSelector.CelExpressions {
			if known.Has(expression) {
				continue
			}
			if err := spec.CheckExpression(expression); err != nil {
				// Report one error. Each expression could have a hundred errors, each of which quotes the expression.
				return field.ErrorList{field.Invalid(at.Index(j), field.OmitValueType{}, "must be an expression in CEL: "+firstError(err))}
			}
			known.Insert(expression)
		}
	}
	return nil
}

// maxMessage is the maximum number of bytes of a reported error.
const maxMessage = 512

// firstError returns the first error, without the expression that it quotes.
func firstError(err error) string {
	first, _, _ := strings.Cut(err.Error(), "\n")
	return strings.ToValidUTF8(first[:min(len(first), maxMessage)], "")
}
