// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/bounds"
	"github.com/clusterhub/clusterhub/pkg/apis/edge"
)

// Languages validates expressions and version ranges. pkg/apis imports no domain, so pkg/registry/edge passes the functions of
// pkg/constraint. If a function is nil, every text of its language is invalid.
type Languages struct {
	// Constraint returns why an expression is invalid, as constraint.Parse does.
	Constraint func(expression string) error
	// Constraints returns why a list of valid expressions is invalid: together they may have too many comparisons.
	Constraints func(expressions []string) error
	// VersionRange returns why a range of versions is invalid.
	VersionRange func(text string) error
}

func (l Languages) constraint(expression string, path *field.Path) field.ErrorList {
	return check(l.Constraint, expression, path)
}

func (l Languages) versionRange(text string, path *field.Path) field.ErrorList {
	return check(l.VersionRange, text, path)
}

func (l Languages) constraints(expressions []string, path *field.Path) field.ErrorList {
	if l.Constraints == nil {
		return check(nil, "", path)
	}
	if err := l.Constraints(expressions); err != nil {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
	}
	return nil
}

func check(language func(string) error, text string, path *field.Path) field.ErrorList {
	if language == nil {
		return field.ErrorList{field.InternalError(path, fmt.Errorf("nothing checks this"))}
	}
	if err := language(text); err != nil {
		return field.ErrorList{field.Invalid(path, text, err.Error())}
	}
	return nil
}

var propertyTypes = []edge.PropertyType{
	edge.PropertyString, edge.PropertyVersion, edge.PropertyBoolean, edge.PropertyInt, edge.PropertyFloat, edge.PropertyList,
}

func validatePolicy(policy *edge.Policy, languages Languages, path *field.Path) field.ErrorList {
	if policy == nil {
		return nil
	}
	errs := validateProperties(policy.Properties, path.Child("properties"))
	constraints := path.Child("constraints")
	for i, expression := range policy.Constraints {
		errs = append(errs, languages.constraint(expression, constraints.Index(i))...)
	}
	if len(errs) == 0 && len(policy.Constraints) > 1 {
		errs = append(errs, languages.constraints(policy.Constraints, constraints)...)
	}
	return errs
}

func validateProperties(properties []edge.Property, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range properties {
		p, at := &properties[i], path.Index(i)
		errs = append(errs, propertyName(p.Name, at.Child("name"))...)
		if p.Type != "" {
			errs = append(errs, bounds.OneOf(at.Child("type"), p.Type, propertyTypes)...)
		}
		errs = append(errs, propertyValue(p, at.Child("value"))...)
	}
	return errs
}

// propertyName rejects names that no constraint can contain.
func propertyName(name string, path *field.Path) field.ErrorList {
	if !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && !unicode.Is(unicode.Sc, r) && !strings.ContainsRune("_-/!?+~'.", r)
	}) {
		return field.ErrorList{field.Invalid(path, name, "must only have letters, digits and the characters _ - / ! ? + ~ ' .")}
	}
	digits := strings.TrimPrefix(name, "-")
	if name == "in" || digits != "" && '0' <= digits[0] && digits[0] <= '9' {
		return field.ErrorList{field.Invalid(path, name, `must not begin like a number, and must not be "in": a constraint could not name it`)}
	}
	return nil
}

func propertyValue(p *edge.Property, path *field.Path) field.ErrorList {
	v := &p.Value
	want := ""
	switch p.Type {
	case edge.PropertyString, edge.PropertyList:
		if v.Type != edge.ValueString {
			want = "a string"
		}
	case edge.PropertyVersion:
		if v.Type != edge.ValueString || !plainVersion(v.String) {
			want = "a version as a string: 1 to 3 numbers with dots between them, such as \"1.2.0\""
		}
	case edge.PropertyBoolean:
		if v.Type != edge.ValueBoolean {
			want = "true or false, without quotes"
		}
	case edge.PropertyInt:
		if v.Type != edge.ValueNumber || v.Number != float64(int64(v.Number)) {
			want = "a number without fraction, without quotes"
		}
	case edge.PropertyFloat:
		if v.Type != edge.ValueNumber {
			want = "a number, without quotes"
		}
	default:
		if v.Type == edge.ValueNone || v.Type == edge.ValueList {
			want = "a string, a number, or true or false"
		}
	}
	if want != "" {
		of := ""
		if p.Type != "" {
			of = fmt.Sprintf("for the type %q ", p.Type)
		}
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, of+"must be "+want)}
	}
	return bounds.Length(path, v.String, 0, maxValue)
}

// namespaceName rejects a text that is neither empty nor a valid name of a namespace.
func namespaceName(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return nil
	}
	var errs field.ErrorList
	for _, fault := range validation.IsDNS1123Label(name) {
		errs = append(errs, field.Invalid(path, name, "must be the name of a namespace: "+fault))
	}
	return errs
}

// once rejects a value that was seen before.
func once[T comparable](seen sets.Set[T], value T, path *field.Path) field.ErrorList {
	if seen.Has(value) {
		return field.ErrorList{field.Duplicate(path, value)}
	}
	seen.Insert(value)
	return nil
}
