// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package constraint

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Type is the declared type of a property.
type Type string

// The types of properties. An untyped property has the type of its value: text is a string, and so on.
const (
	Untyped Type = ""
	String  Type = "string"
	Version Type = "version"
	Boolean Type = "boolean"
	Int     Type = "int"
	Float   Type = "float"
	List    Type = "list of strings"
)

// Types are all types that a property may declare, without Untyped.
var Types = []Type{String, Version, Boolean, Int, Float, List}

// Property is a fact about a node or a service.
type Property struct {
	Name string `json:"name"`
	// Value is a string, a bool, or a number: a float, an integer of 32 or 64 bits, or a json.Number. A list is a string, with commas.
	Value any  `json:"value"`
	Type  Type `json:"type,omitempty"`
}

// Properties are validated properties, for evaluating constraints against them.
type Properties struct {
	list   []Property
	byName map[string]*value
}

// NewProperties validates properties: their names, and that each value is of its type. Of several properties with one name, the first wins.
func NewProperties(properties []Property) (*Properties, error) {
	if len(properties) > MaxProperties {
		return nil, fmt.Errorf("expected at most %d properties, found %d", MaxProperties, len(properties))
	}
	checked := &Properties{byName: make(map[string]*value, len(properties))}
	for i, property := range properties {
		if property.Name == "" || len(property.Name) > MaxNameLength {
			return nil, fmt.Errorf("property %d: expected a name of 1 to %d bytes, found %d bytes", i+1, MaxNameLength, len(property.Name))
		}
		value, err := newValue(property)
		if err != nil {
			return nil, fmt.Errorf("property %q: %w", property.Name, err)
		}
		if _, there := checked.byName[property.Name]; there {
			continue
		}
		checked.byName[property.Name] = value
		checked.list = append(checked.list, property)
	}
	return checked, nil
}

// All returns the properties, in the given order, without repeated names.
func (p *Properties) All() []Property {
	if p == nil {
		return nil
	}
	return slices.Clone(p.list)
}

// Get returns the property of this name.
func (p *Properties) Get(name string) (Property, bool) {
	if p == nil {
		return Property{}, false
	}
	for _, property := range p.list {
		if property.Name == name {
			return property, true
		}
	}
	return Property{}, false
}

// Keys returns the keys of all that the property of this name is equal to, for an index of Requirements. It returns none if the property does not
// exist.
func (p *Properties) Keys(name string) []string {
	value := p.get(name)
	if value == nil {
		return nil
	}
	return value.keys()
}

func (p *Properties) get(name string) *value {
	if p == nil {
		return nil
	}
	return p.byName[name]
}

// value is the value of a property in the form in which it is compared.
type value struct {
	kind    valueKind
	number  float64
	boolean bool
	// text is without quotes around it, and without spaces around these.
	text string
	// declared is the declared type, if text is a version or a list.
	declared Type
	// word is the text without another pair of quotes. parts are the texts between commas: each without spaces around it, and then without quotes.
	// words are the parts without another pair of each.
	word         string
	parts, words []string
	// version is the text as a version, or nil.
	version *version
}

type valueKind int

const (
	number valueKind = iota
	boolean
	text
)

func newValue(property Property) (*value, error) {
	known := property.Type == Untyped || slices.Contains(Types, property.Type)
	if !known {
		return nil, fmt.Errorf("expected the type to be one of %s, or none, found %q", quoted(Types), short(string(property.Type)))
	}
	wrong := func(expected string) error {
		return fmt.Errorf("of type %q expected %s, found %s", property.Type, expected, describe(property.Value))
	}
	switch given := property.Value.(type) {
	case string:
		if len(given) > MaxValueLength {
			return nil, fmt.Errorf("expected a value of at most %d bytes, found %d bytes", MaxValueLength, len(given))
		}
		trimmed := trim(unquote(given))
		switch property.Type {
		case Boolean:
			return nil, wrong("true or false, without quotes")
		case Int, Float:
			return nil, wrong("a number, without quotes")
		case Version:
			if !strictVersion(trimmed) {
				return nil, wrong("a version of one to three numbers, such as 1.2.0")
			}
		}
		return newText(trimmed, property.Type), nil
	case bool:
		if property.Type != Untyped && property.Type != Boolean {
			return nil, wrong("no boolean")
		}
		return &value{kind: boolean, boolean: given}, nil
	}
	float, ok := asFloat(property.Value)
	switch {
	case !ok:
		return nil, fmt.Errorf("expected a string, a number, true or false, found %s", describe(property.Value))
	case property.Type != Untyped && property.Type != Int && property.Type != Float:
		return nil, wrong("no number")
	case property.Type == Int && float != math.Trunc(float):
		return nil, wrong("a whole number")
	}
	return &value{kind: number, number: float}, nil
}

// newText returns the value of a text without quotes around it and spaces around these.
func newText(trimmed string, declared Type) *value {
	v := &value{kind: text, text: trimmed, declared: declared, word: unquote(trim(trimmed)), parts: split(trimmed), version: parseVersion(trimmed)}
	for _, part := range v.parts {
		v.words = append(v.words, unquote(trim(part)))
	}
	return v
}

// asFloat returns a finite value as a number.
func asFloat(one any) (float64, bool) {
	var float float64
	switch given := one.(type) {
	case float64:
		float = given
	case float32:
		float = float64(given)
	case int:
		float = float64(given)
	case int32:
		float = float64(given)
	case int64:
		float = float64(given)
	case uint:
		float = float64(given)
	case uint32:
		float = float64(given)
	case uint64:
		float = float64(given)
	case json.Number:
		var err error
		float, err = given.Float64()
		if err != nil {
			return 0, false
		}
	default:
		return 0, false
	}
	return float, !math.IsNaN(float) && !math.IsInf(float, 0)
}

func describe(one any) string {
	switch given := one.(type) {
	case nil:
		return "nothing"
	case string:
		return strconv.Quote(short(given))
	case bool:
		return strconv.FormatBool(given)
	}
	if float, ok := asFloat(one); ok {
		return strconv.FormatFloat(float, 'g', -1, 64)
	}
	return fmt.Sprintf("a %T", one)
}

// short returns the beginning of a long text, for errors.
func short(long string) string {
	const most = 60
	if len(long) <= most {
		return long
	}
	return strings.ToValidUTF8(long[:most], "") + "…"
}

func quoted(types []Type) string {
	var all []string
	for _, one := range types {
		all = append(all, strconv.Quote(string(one)))
	}
	return strings.Join(all, ", ")
}
