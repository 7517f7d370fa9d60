// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hzn

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
)

// object is an object in a file. Fields are removed from it as they are read.
type object struct {
	*reader
	at     string
	values map[string]any
}

func join(at, field string) string {
	if at == "" {
		return field
	}
	return at + "." + field
}

// lookup finds a field as hzn does, which ignores the case of letters.
func lookup(values map[string]any, name string) (string, bool) {
	if _, ok := values[name]; ok {
		return name, true
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if strings.EqualFold(key, name) {
			return key, true
		}
	}
	return "", false
}

func (o *object) take(name string) any {
	key, ok := lookup(o.values, name)
	if !ok {
		return nil
	}
	value := o.values[key]
	delete(o.values, key)
	return value
}

// pop removes and returns a field of one type; empty if it does not exist, or is null.
func pop[T any](o *object, name, is string) T {
	value := o.take(name)
	typed, ok := value.(T)
	if value != nil && !ok {
		o.fail(join(o.at, name), "must be %s", is)
	}
	return typed
}

func (o *object) text(name string) string { return pop[string](o, name, "a string") }

func (o *object) boolean(name string) bool { return pop[bool](o, name, "true or false") }

// largeNumber bounds the numbers that are read as int32.
const largeNumber = 1 << 30

func (o *object) number(name string) int32 {
	switch value := o.take(name).(type) {
	case nil:
		return 0
	case int64:
		if -largeNumber <= value && value <= largeNumber {
			return int32(value)
		}
	case float64:
		if value == math.Trunc(value) && math.Abs(value) <= largeNumber {
			return int32(value)
		}
	default:
		o.fail(join(o.at, name), "must be a number")
		return 0
	}
	o.fail(join(o.at, name), "must be a number without fraction, and not a large one")
	return 0
}

// list returns the objects of a list.
func (o *object) list(name string) []*object {
	var list []*object
	for i, entry := range pop[[]any](o, name, "a list") {
		at := fmt.Sprintf("%s[%d]", join(o.at, name), i)
		values, ok := entry.(map[string]any)
		if !ok {
			o.fail(at, "must be an object")
			continue
		}
		list = append(list, &object{o.reader, at, values})
	}
	return list
}

// inner returns an object in the object; nil if it does not exist.
func (o *object) inner(name string) *object {
	values := pop[map[string]any](o, name, "an object")
	if len(values) == 0 {
		return nil
	}
	return &object{o.reader, join(o.at, name), values}
}

// skip removes a field, and adds a note why it is not converted, unless it is empty.
func (o *object) skip(name, why string) {
	if value := o.take(name); !empty(value) {
		o.note(join(o.at, name), "is ignored: "+why)
	}
}

// drop removes fields that have no meaning outside of Open Horizon, without a note.
func (o *object) drop(names ...string) {
	for _, name := range names {
		o.take(name)
	}
}

// done adds a note for each remaining field.
func (o *object) done() {
	for _, key := range slices.Sorted(maps.Keys(o.values)) {
		if !empty(o.values[key]) {
			o.note(join(o.at, key), "is ignored: the field is not known")
		}
	}
}

func empty(value any) bool {
	if value == nil {
		return true
	}
	v := reflect.ValueOf(value)
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	}
	return v.IsZero()
}

// properties returns the properties of a policy. As in Open Horizon, the first of several with the same name is used.
func (o *object) properties() []v1alpha1.Property {
	var properties []v1alpha1.Property
	seen := map[string]bool{}
	for _, p := range o.list("properties") {
		property := v1alpha1.Property{Name: p.text("name"), Type: p.propertyType()}
		property.Value = p.propertyValue(property.Type)
		p.done()
		switch {
		case readOnly(property.Name):
			o.note(p.at, "is ignored: the hub makes "+property.Name+" itself")
		case seen[property.Name]:
			o.note(p.at, "is ignored: an earlier one has the name "+property.Name+", too, and counts")
		default:
			properties = append(properties, property)
		}
		seen[property.Name] = true
	}
	return properties
}

// propertyType returns a type; in some files hzn accepts bool for boolean.
func (o *object) propertyType() v1alpha1.PropertyType {
	kind := o.text("type")
	if kind == "bool" {
		o.note(join(o.at, "type"), "is now boolean")
		return v1alpha1.PropertyBoolean
	}
	return v1alpha1.PropertyType(kind)
}

// propertyValue returns a value, converted to the type if the file has it as text.
func (o *object) propertyValue(kind v1alpha1.PropertyType) v1alpha1.Value {
	value := o.value("value")
	if value.Type != v1alpha1.ValueString {
		return value
	}
	switch kind {
	case v1alpha1.PropertyBoolean:
		if value.String == "true" || value.String == "false" {
			o.note(join(o.at, "value"), "is true or false now, without quotes, as the type says")
			return v1alpha1.Value{Type: v1alpha1.ValueBoolean, Boolean: value.String == "true"}
		}
	case v1alpha1.PropertyInt, v1alpha1.PropertyFloat:
		number, err := strconv.ParseFloat(value.String, 64)
		if err != nil || number-number != 0 {
			return value
		}
		o.note(join(o.at, "value"), "is a number now, without quotes, as the type says")
		if whole, err := strconv.ParseInt(value.String, 10, 64); err == nil {
			o.values["value"] = whole
			return o.value("value")
		}
		return v1alpha1.Value{Type: v1alpha1.ValueNumber, Number: number}
	}
	return value
}

func (o *object) value(name string) v1alpha1.Value {
	value, err := v1alpha1.ValueOf(o.take(name))
	if err != nil {
		o.fail(join(o.at, name), "%v", err)
	}
	return value
}

func (o *object) constraints() []string {
	var constraints []string
	for i, entry := range pop[[]any](o, "constraints", "a list of strings") {
		text, ok := entry.(string)
		if !ok {
			o.fail(fmt.Sprintf("%s[%d]", join(o.at, "constraints"), i), "must be a string")
			continue
		}
		constraints = append(constraints, text)
	}
	return constraints
}

func (o *object) policyPart() v1alpha1.Policy {
	return v1alpha1.Policy{Properties: o.properties(), Constraints: o.constraints()}
}

func isNamespace(name string) bool { return len(validation.IsDNS1123Label(name)) == 0 }

// objectName converts a text to a name. It returns "" if that is not possible.
func objectName(name string) string {
	valid := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9', r == '-', r == '.':
			return r
		case 'A' <= r && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, name)
	valid = strings.Trim(valid[:min(len(valid), edge.MaxOriginName)], "-.")
	if len(validation.IsDNS1123Subdomain(valid)) > 0 {
		return ""
	}
	return valid
}

// nameOf identifies objects of one kind.
func nameOf(read runtime.Object) string {
	accessor, err := meta.Accessor(read)
	if err != nil {
		return ""
	}
	return accessor.GetNamespace() + "/" + accessor.GetName()
}
