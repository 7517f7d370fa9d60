// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package operatortest

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Field is a field of a spec without subfields. Fields of list items are included.
type Field struct {
	// Path is the path as users write it, such as registrationConfiguration.featureGates.feature.
	Path string
	// steps are the indexes that lead to it; -1 stands for the first item of a list.
	steps []int
	kind  reflect.Type
}

var (
	durations  = reflect.TypeFor[metav1.Duration]()
	quantities = reflect.TypeFor[resource.Quantity]()
	bytes      = reflect.TypeFor[[]byte]()
)

// Fields returns all fields of a type.
func Fields(of reflect.Type) []Field { return fields(Field{kind: of}) }

func fields(at Field) (all []Field) {
	switch kind := at.kind; {
	case kind.Kind() == reflect.Pointer:
		at.kind = kind.Elem()
		return fields(at)
	case kind == durations || kind == quantities || kind == bytes:
	case kind.Kind() == reflect.Slice:
		at.kind, at.steps = kind.Elem(), append(at.steps[:len(at.steps):len(at.steps)], -1)
		return fields(at)
	case kind.Kind() == reflect.Struct:
		for i := range kind.NumField() {
			name, _, _ := strings.Cut(kind.Field(i).Tag.Get("json"), ",")
			path := strings.Trim(at.Path+"."+name, ".")
			all = append(all, fields(Field{Path: path, steps: append(at.steps[:len(at.steps):len(at.steps)], i), kind: kind.Field(i).Type})...)
		}
		return all
	}
	return []Field{at}
}

// Set sets the field to a value, or, if that is nil, to a value of its type that is not the zero value. It creates missing parents.
func (f Field) Set(spec any, value any) {
	v := reflect.ValueOf(spec).Elem()
	for _, step := range f.steps {
		v = made(v)
		if step >= 0 {
			v = v.Field(step)
			continue
		}
		if v.Len() == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
		v = v.Index(0)
	}
	v = made(v)
	if value != nil {
		v.Set(reflect.ValueOf(value).Convert(v.Type()))
		return
	}
	fill(v)
}

func made(v reflect.Value) reflect.Value {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		v = v.Elem()
	}
	return v
}

func fill(v reflect.Value) {
	switch {
	case v.Type() == durations:
		v.Set(reflect.ValueOf(metav1.Duration{Duration: time.Minute}))
	case v.Type() == quantities:
		v.Set(reflect.ValueOf(resource.MustParse("20Gi")))
	case v.Type() == bytes:
		v.SetBytes([]byte("x"))
	case v.Kind() == reflect.String:
		v.SetString("x")
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(7)
	case v.Kind() == reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	default:
		panic(fmt.Sprintf("there is no value of kind %s for a test: add one", v.Type()))
	}
}

// Names reports whether a text names the field, or a field that contains it.
func (f Field) Names(text string) bool {
	for path := f.Path; path != ""; path = path[:max(0, strings.LastIndex(path, "."))] {
		if i := strings.Index(text, path); i >= 0 && !isLetter(text, i+len(path)) {
			return true
		}
	}
	return false
}

func isLetter(text string, i int) bool {
	return i < len(text) && (text[i] >= 'a' && text[i] <= 'z' || text[i] >= 'A' && text[i] <= 'Z')
}
