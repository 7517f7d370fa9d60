// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

//go:generate sh -c "cd ../models && go run . > ../api/model.json.new && mv ../api/model.json.new ../api/model.json"

// modelJSON has the parts of AWS's API models for the operations that are served here.
//
//go:embed model.json
var modelJSON []byte

type ServiceModel struct {
	APIVersion   string
	XMLNamespace string
	Operations   map[string]*OperationModel
	Shapes       map[string]*shape
}

type OperationModel struct {
	Method, URI, Input, Result string
	Errors                     map[string]int
}

type shape struct {
	Type               string
	Required           []string
	Members            map[string]shapeRef
	Member, Key, Value *shapeRef
	Min, Max           *int
	Pattern            string
	Enum               []string

	re *regexp.Regexp
}

type shapeRef struct{ Shape, Location, Name string }

var Models = func() map[string]*ServiceModel {
	var all struct{ Services map[string]*ServiceModel }
	if err := json.Unmarshal(modelJSON, &all); err != nil {
		panic(fmt.Sprintf("model.json: %v", err))
	}
	for _, m := range all.Services {
		for _, s := range m.Shapes {
			if s.Pattern != "" {
				s.re = regexp.MustCompile(s.Pattern)
			}
		}
	}
	return all.Services
}()

// Route returns the operation of a REST request and the parameters in its path.
func (m *ServiceModel) Route(method, rawPath string) (name string, params map[string]any) {
	parts := strings.Split(rawPath, "/")
next:
	for name, op := range m.Operations {
		uri := strings.Split(op.URI, "/")
		if op.Method != method || len(uri) != len(parts) {
			continue
		}
		params = map[string]any{}
		for i, part := range uri {
			if !strings.HasPrefix(part, "{") {
				if part != parts[i] {
					continue next
				}
				continue
			}
			value, err := url.PathUnescape(parts[i])
			if err != nil || value == "" {
				continue next
			}
			params[m.memberAt(op, "uri", strings.Trim(part, "{}"))] = value
		}
		return name, params
	}
	return "", nil
}

// memberAt returns the input member that the request has at that location.
func (m *ServiceModel) memberAt(op *OperationModel, location, name string) string {
	for member, r := range m.Shapes[op.Input].Members {
		if r.Location == location && r.Name == name {
			return member
		}
	}
	return name
}

// FromURLQuery adds the parameters in the query string of a REST request.
func (m *ServiceModel) FromURLQuery(op *OperationModel, query url.Values, params map[string]any) {
	for name, values := range query {
		member := m.memberAt(op, "querystring", name)
		r, ok := m.Shapes[op.Input].Members[member]
		switch {
		case ok && m.Shapes[r.Shape].Type == "list":
			list := []any{}
			for _, v := range values {
				list = append(list, v)
			}
			params[member] = list
		default:
			params[member] = values[0]
		}
	}
}

// FromForm returns the parameters of a request in AWS's query protocol, such as Tags.member.1.Key=a.
func (m *ServiceModel) FromForm(op *OperationModel, form url.Values) (map[string]any, error) {
	left := maps.Clone(form)
	for key := range left {
		if key == "Action" || key == "Version" || strings.HasPrefix(strings.ToLower(key), "x-amz-") {
			delete(left, key)
		}
	}
	params, _ := m.take(m.Shapes[op.Input], "", left).(map[string]any)
	if len(left) > 0 {
		return nil, fmt.Errorf("parameters that AWS's model does not know: %s", strings.Join(slices.Sorted(maps.Keys(left)), ", "))
	}
	if params == nil {
		params = map[string]any{}
	}
	return params, nil
}

// take removes the value at a key from form and returns it, or nil if there is none.
func (m *ServiceModel) take(s *shape, key string, form url.Values) any {
	under := func(name string) string { return strings.TrimPrefix(key+"."+name, ".") }
	switch s.Type {
	case "structure":
		out := map[string]any{}
		for name, r := range s.Members {
			if v := m.take(m.Shapes[r.Shape], under(name), form); v != nil {
				out[name] = v
			}
		}
		if len(out) > 0 {
			return out
		}
	case "list":
		var out []any
		for i := 1; ; i++ {
			v := m.take(m.Shapes[s.Member.Shape], under("member."+strconv.Itoa(i)), form)
			if v == nil {
				break
			}
			out = append(out, v)
		}
		if out != nil {
			return out
		}
		if v, ok := form[key]; ok && v[0] == "" { // an empty list is encoded like this
			delete(form, key)
			return []any{}
		}
	default:
		if v, ok := form[key]; ok {
			delete(form, key)
			return v[0]
		}
	}
	return nil
}

// Validate returns violations of AWS's model in the parameters.
func (m *ServiceModel) Validate(op *OperationModel, params map[string]any) []string {
	return m.check(m.Shapes[op.Input], "", params)
}

func (m *ServiceModel) check(s *shape, at string, value any) []string {
	var faults []string
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Sprintf("Value at '%s' failed to satisfy constraint: %s", at, fmt.Sprintf(format, args...)))
	}
	size := func(n int, unit string) {
		if s.Min != nil && n < *s.Min {
			fault("Member must have %s greater than or equal to %d", unit, *s.Min)
		}
		if s.Max != nil && n > *s.Max {
			fault("Member must have %s less than or equal to %d", unit, *s.Max)
		}
	}
	under := func(name string) string { return strings.TrimPrefix(at+"."+name, ".") }
	switch v := value.(type) {
	case map[string]any:
		switch s.Type {
		case "structure":
			for _, name := range s.Required {
				if v[name] == nil {
					faults = append(faults, fmt.Sprintf("Value null at '%s' failed to satisfy constraint: Member must not be null", under(name)))
				}
			}
			for _, name := range slices.Sorted(maps.Keys(v)) {
				r, ok := s.Members[name]
				if !ok {
					faults = append(faults, fmt.Sprintf("'%s' is not in AWS's model", under(name)))
				} else if v[name] != nil {
					faults = append(faults, m.check(m.Shapes[r.Shape], under(name), v[name])...)
				}
			}
		case "map":
			size(len(v), "length")
			for _, key := range slices.Sorted(maps.Keys(v)) {
				faults = append(faults, m.check(m.Shapes[s.Key.Shape], under(key), key)...)
				faults = append(faults, m.check(m.Shapes[s.Value.Shape], under(key), v[key])...)
			}
		default:
			fault("Member must be a %s", s.Type)
		}
	case []any:
		if s.Type != "list" {
			fault("Member must be a %s", s.Type)
			break
		}
		size(len(v), "length")
		for i, element := range v {
			faults = append(faults, m.check(m.Shapes[s.Member.Shape], under("member."+strconv.Itoa(i+1)), element)...)
		}
	case string:
		switch s.Type {
		case "string":
			size(utf8.RuneCountInString(v), "length")
			if s.re != nil && !s.re.MatchString(v) {
				fault("Member must satisfy regular expression pattern: %s", s.Pattern)
			}
			if s.Enum != nil && !slices.Contains(s.Enum, v) {
				fault("Member must satisfy enum value set: %v", s.Enum)
			}
		case "integer":
			n, err := strconv.Atoi(v)
			if err != nil {
				fault("Member must be a number")
				break
			}
			size(n, "value")
		default:
			fault("Member must be a %s", s.Type)
		}
	case float64:
		if s.Type != "integer" || v != math.Trunc(v) {
			fault("Member must be a %s", s.Type)
			break
		}
		size(int(v), "value")
	case bool:
		if s.Type != "boolean" {
			fault("Member must be a %s", s.Type)
		}
	default:
		fault("Member must not be null")
	}
	return faults
}

// Params are the parameters of a request that has been validated against the model.
type Params map[string]any

func (p Params) Has(name string) bool { return p[name] != nil }

func (p Params) Str(name string) string { s, _ := p[name].(string); return s }

// Num returns a number, or fallback if the request does not have it.
func (p Params) Num(name string, fallback int) int {
	switch v := p[name].(type) {
	case float64:
		return int(v)
	case string:
		if n, err := strconv.Atoi(v); err == nil {
			return n
		}
	}
	return fallback
}

func (p Params) Strs(name string) []string {
	list, _ := p[name].([]any)
	out := make([]string, 0, len(list))
	for _, v := range list {
		s, _ := v.(string)
		out = append(out, s)
	}
	return out
}

// Tags reads tags in either form: a list of keys and values, or a map.
func (p Params) Tags(name string) []Tag {
	var out []Tag
	switch v := p[name].(type) {
	case []any:
		for _, element := range v {
			tag, _ := element.(map[string]any)
			out = append(out, Tag{Params(tag).Str("Key"), Params(tag).Str("Value")})
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out = append(out, Tag{key, Params(v).Str(key)})
		}
	}
	return out
}

// Tag is a tag.
type Tag struct {
	Key   string `json:"Key" xml:"Key"`
	Value string `json:"Value" xml:"Value"`
}
