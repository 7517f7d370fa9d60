// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rulecheck validates the condition and feedback rules of works and of the templates of replica sets when they are written, so that an error
// is reported to the writer, and not much later by a condition of each cluster.
//
// An error for every agent is rejected. A function, a variable or a path that agents of this version do not know causes only a warning: the agent
// decides, and it may be a newer one, or upstream's. Rules that were stored before may stay, in whatever place, so that a work can be changed after
// the validation of rules has changed.
package rulecheck

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/lru"

	"github.com/clusterhub/clusterhub/pkg/apis/work"
	"github.com/clusterhub/clusterhub/pkg/work/rules"
	"github.com/clusterhub/clusterhub/pkg/work/status"
)

const (
	// maxNew is the maximum number of bytes of the expressions that are compiled for one write: those that are not stored yet, each once. That takes
	// some tenths of a second, and is enough for some hundred different rules.
	maxNew = 64 << 10
	// maxWarnings is the maximum number of warnings.
	maxWarnings = 8
	// remembered is the number of expressions whose findings are cached. The works of a replica set have the same expressions.
	remembered = 4096
)

// expression is one text in one of the two places.
type expression struct {
	text    string
	message bool
}

// finding has the errors of an expression. Both are nil for a valid one.
type finding struct{ fault, unknown error }

// findings are by the hash of an expression.
var findings = lru.New(remembered)

func (e expression) check() finding {
	key := sha256.Sum256(fmt.Appendf(nil, "%t %s", e.message, e.text))
	if found, ok := findings.Get(key); ok {
		return found.(finding)
	}
	var f finding
	if e.message {
		f.fault, f.unknown = rules.CheckMessage(e.text)
	} else {
		f.fault, f.unknown = rules.CheckExpression(e.text)
	}
	findings.Add(key, f)
	return f
}

// Validate adds the first error of the rules to the other errors. Without other errors, the number and the length of rules are limited.
func Validate(errs field.ErrorList, spec, old *work.ManifestWorkSpec, path *field.Path) field.ErrorList {
	if len(errs) > 0 {
		return errs
	}
	types, known := sets.New[string](), sets.New[expression]()
	_ = each(old, path, func(r *work.ConditionRule, _ *field.Path) error {
		types.Insert(r.Condition)
		return nil
	}, func(e expression, _ *field.Path) error {
		known.Insert(e)
		return nil
	})
	size := 0
	var refused *field.Error
	_ = each(spec, path, func(r *work.ConditionRule, at *field.Path) error {
		if types.Has(r.Condition) || status.Makes(r.Condition) {
			return nil
		}
		refused = field.Invalid(at.Child("condition"), r.Condition,
			"must be the type of a condition that the agent does not set itself, such as Ready or example.com/Ready")
		return errStop
	}, func(e expression, at *field.Path) error {
		if known.Has(e) {
			return nil
		}
		known.Insert(e)
		size += len(e.text)
		if size > maxNew {
			refused = field.Forbidden(at, fmt.Sprintf("the expressions that are new have more than %d bytes together: use the same ones for several manifests, "+
				"or divide the manifests among several works", maxNew))
			return errStop
		}
		if fault := e.check().fault; fault != nil {
			refused = field.Invalid(at, field.OmitValueType{}, "must be an expression in CEL: "+fault.Error())
			return errStop
		}
		return nil
	})
	if refused != nil {
		return field.ErrorList{refused}
	}
	return validatePaths(spec, old, path)
}

// Warnings returns warnings about names that agents of this version do not know. It is called after Validate.
func Warnings(spec *work.ManifestWorkSpec, path *field.Path) []string {
	var warnings []string
	size, known := 0, sets.New[expression]()
	_ = each(spec, path, func(*work.ConditionRule, *field.Path) error { return nil }, func(e expression, at *field.Path) error {
		if known.Has(e) {
			return nil
		}
		known.Insert(e)
		size += len(e.text)
		if size > maxNew || len(warnings) == maxWarnings {
			return errStop
		}
		f := e.check()
		if f.unknown == nil {
			f.unknown = f.fault // of a rule that was stored before
		}
		if f.unknown != nil {
			warnings = append(warnings, fmt.Sprintf("%s: %v: an agent that does not know it reports an error instead of the condition", at, f.unknown))
		}
		return nil
	})
	return append(warnings, warnOfPaths(spec, path)...)
}

// errStop ends an iteration with each.
var errStop = errors.New("enough")

// each iterates over the rules and the expressions that they use. Only rules of the type CEL use celExpressions.
func each(spec *work.ManifestWorkSpec, path *field.Path, rule func(*work.ConditionRule, *field.Path) error, use func(expression, *field.Path) error) error {
	for i := range spec.ManifestConfigs {
		for j := range spec.ManifestConfigs[i].ConditionRules {
			r, at := &spec.ManifestConfigs[i].ConditionRules[j], path.Child("manifestConfigs").Index(i).Child("conditionRules").Index(j)
			if err := rule(r, at); err != nil {
				return err
			}
			if r.Type == work.CelConditionExpressionsType {
				for k, text := range r.CelExpressions {
					if err := use(expression{text: text}, at.Child("celExpressions").Index(k)); err != nil {
						return err
					}
				}
			}
			if r.MessageExpression != "" {
				if err := use(expression{r.MessageExpression, true}, at.Child("messageExpression")); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
