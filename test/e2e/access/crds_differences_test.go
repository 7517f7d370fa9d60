// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
)

// twoAnswers has the responses of both servers to a request: a status code, or the object that they would store.
type twoAnswers struct {
	kind, part, field, value string
	crds, ours               string
}

func (d *twoAnswers) refusedByUs() bool { return strings.HasPrefix(d.crds, taken) && d.ours == "422" }

func (d *twoAnswers) refusedByCRDs() bool { return d.crds == "422" && strings.HasPrefix(d.ours, taken) }

// alike reports whether the objects that both would store differ only in empty fields.
func (d *twoAnswers) alike() bool {
	var crds, ours any
	if json.Unmarshal([]byte(strings.TrimPrefix(d.crds, taken)), &crds) != nil || json.Unmarshal([]byte(strings.TrimPrefix(d.ours, taken)), &ours) != nil {
		return false
	}
	return reflect.DeepEqual(withoutEmpty(crds), withoutEmpty(ours))
}

// withoutEmpty returns a value without its empty fields.
func withoutEmpty(value any) any {
	switch v := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for name, field := range v {
			field = withoutEmpty(field)
			if field != nil {
				kept[name] = field
			}
		}
		if len(kept) > 0 {
			return kept
		}
	case []any:
		if len(v) > 0 {
			kept := make([]any, len(v))
			for i := range v {
				kept[i] = withoutEmpty(v[i])
			}
			return kept
		}
	default:
		if value != nil && !reflect.ValueOf(value).IsZero() {
			return value
		}
	}
	return nil
}

func matches(expression string) func(string) bool { return regexp.MustCompile(expression).MatchString }

// knownDifferences are the rows of docs/access.md, by their prefix, in the order in which they are tried.
var knownDifferences = []struct {
	row string
	of  func(*twoAnswers) bool
}{
	{"a Cluster whose profile does not exist", func(d *twoAnswers) bool {
		return d.refusedByUs() && d.kind == "clusters" && (d.field == "spec.profile" && d.value == `"x"` || d.field == "spec.kubernetes.version")
	}},
	{"a RoleRef of kind Role without a namespace", func(d *twoAnswers) bool {
		return d.refusedByUs() && matches(`\.(rules\.0\.[a-zA-Z]+|roleRefs\.0\.(kind|name|namespace)|(permissions|roles)\.0\.name(space)?|subjects\.0\.(kind|name))$`)(d.field)
	}},
	{"a new AccessRequest with a `ttl` of 0 or less", func(d *twoAnswers) bool {
		return d.refusedByUs() && d.part == "create" && d.field == "spec.ttl" && matches(`^"(0s|-)`)(d.value)
	}},
	{"no `spec`, an empty `profile`", func(d *twoAnswers) bool {
		return d.refusedByUs() && (d.field == "a field in capitals" || d.field == "spec" && matches(`^(absent|null)$`)(d.value) ||
			matches(`^spec\.(profile|provider(Config)?Ref(\.name)?|(cluster|request)Ref\.name(space)?)$`)(d.field) && matches(`^(absent|null|""|{)`)(d.value))
	}},
	{"a new object without `kind` or `apiVersion`", func(d *twoAnswers) bool {
		return d.crds == "400" && strings.HasPrefix(d.ours, taken) && matches(`^no (kind|apiVersion)$`)(d.field)
	}},
	{"more than [so many entries or bytes]", func(d *twoAnswers) bool { return d.refusedByUs() && matches(`^"x{19}$`)(d.value) }},
	{"a `ttl` that is no duration", func(d *twoAnswers) bool {
		return strings.HasPrefix(d.crds, taken) && d.field == "spec.ttl" && matches(`^(400|422|500)$`)(d.ours)
	}},
	{"a value of another type", func(d *twoAnswers) bool {
		return d.ours == "400" || d.refusedByUs() && d.field == "conditions.0.lastTransitionTime" && matches(`^\[`)(d.value)
	}},
	{"a negative `observedGeneration`", func(d *twoAnswers) bool {
		return d.refusedByUs() && d.field == "observedGeneration" && d.value == "-1"
	}},
	{"an entry of `endpoints` with an empty `name`", func(d *twoAnswers) bool {
		return d.refusedByUs() && d.field == "endpoints.0.name" && d.value == `""`
	}},
	{"`null` as an entry of a list", func(d *twoAnswers) bool {
		return d.refusedByCRDs() && (d.value == "[null]" || d.value == "null" && matches(`\.0$`)(d.field))
	}},
	{"`null` in an apply", func(d *twoAnswers) bool { return d.refusedByCRDs() && d.part == "apply" && d.value == "null" }},
	{"a status without `phase` or `observedGeneration`", func(d *twoAnswers) bool {
		return d.refusedByCRDs() && d.part == "status" && matches(`^(phase|observedGeneration|conditions\.0\.message)$`)(d.field) &&
			matches(`^(absent|null|{)`)(d.value)
	}},
	{"an entry of `endpoints` without `url`", func(d *twoAnswers) bool {
		return d.refusedByCRDs() && d.field == "endpoints.0.url" && matches(`^(absent|null)`)(d.value)
	}},
	{"`permissions: []` and other optional", func(d *twoAnswers) bool { return d.alike() }},
}
