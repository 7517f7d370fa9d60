// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plaintext keeps control characters out of stored objects. Programs print what agents, tenants and providers write: an escape sequence could
// change what an admin sees in a terminal, and one C1 character makes kubectl get -o yaml fail for a whole list.
package plaintext

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"

	"github.com/clusterhub/clusterhub/pkg/admission/permission"
	"github.com/clusterhub/clusterhub/pkg/apis/bounds"
)

const (
	// PluginName is the name of the plugin in flags and metrics.
	PluginName = "PlainText"
	// enough is the largest number of fields in an error.
	enough = 8
)

// Plugin replaces the characters that bounds.IsPlain rejects in a status, whose writers report what they found elsewhere, and rejects them in all
// other strings. A string that is already stored may stay. The objects in a work have other authors: it only rejects characters that YAML cannot
// have.
type Plugin struct {
	*admission.Handler
}

var (
	_ admission.MutationInterface   = &Plugin{}
	_ admission.ValidationInterface = &Plugin{}
)

// New returns the plugin.
func New() *Plugin { return &Plugin{admission.NewHandler(admission.Create, admission.Update)} }

// Admit implements admission.MutationInterface.
func (p *Plugin) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if status := statusOf(a.GetObject()); status.IsValid() {
		clean(status)
	}
	return nil
}

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if _, _, ok := permission.Stored(a); !ok {
		return nil
	}
	found := &search{}
	found.in(reflect.ValueOf(a.GetObject()), nil)
	if len(found.errs) == 0 {
		return nil
	}
	if a.GetOperation() == admission.Update {
		before := &search{texts: sets.New[string]()}
		before.in(reflect.ValueOf(a.GetOldObject()), nil)
		found = &search{stored: before.texts}
		found.in(reflect.ValueOf(a.GetObject()), nil)
	}
	if len(found.errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(a.GetKind().GroupKind(), a.GetName(), found.errs)
}

// statusOf returns the status of an object, or the zero Value if it has none.
func statusOf(object runtime.Object) reflect.Value {
	v := reflect.ValueOf(object)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return reflect.Value{}
	}
	return v.Elem().FieldByName("Status")
}

var (
	raw    = reflect.TypeFor[runtime.RawExtension]()
	opaque = sets.New(reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime](), reflect.TypeFor[metav1.FieldsV1]())
)

// clean replaces characters in all strings of a value that can be set.
func clean(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if text := v.String(); !bounds.IsPlain(text) {
			v.SetString(bounds.Plain(text))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			clean(v.Elem())
		}
	case reflect.Struct:
		if opaque.Has(v.Type()) {
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				clean(v.Field(i))
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		for i := range v.Len() {
			clean(v.Index(i))
		}
	case reflect.Map:
		cleanMap(v)
	}
}

// cleanMap replaces the entries of a map whose key or value is not plain: values of maps cannot be set in place.
func cleanMap(v reflect.Value) {
	for _, key := range v.MapKeys() {
		next := [2]reflect.Value{reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()}
		next[0].Set(key)
		next[1].Set(v.MapIndex(key))
		clean(next[0])
		clean(next[1])
		if !next[0].Equal(key) {
			v.SetMapIndex(key, reflect.Value{})
		}
		v.SetMapIndex(next[0], next[1])
	}
}

// search collects the strings of an object that are not plain: as errors, except those that are already stored, or as texts.
type search struct {
	stored, texts sets.Set[string]
	errs          field.ErrorList
}

// in searches a value. Paths are built only for the strings that are found.
func (s *search) in(v reflect.Value, at *place) {
	if len(s.errs) >= enough {
		return
	}
	switch v.Kind() {
	case reflect.String:
		s.found(v.String(), at, bounds.NotPlain)
	case reflect.Pointer:
		if !v.IsNil() {
			s.in(v.Elem(), at)
		}
	case reflect.Struct:
		s.inStruct(v, at)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		for i := range v.Len() {
			s.in(v.Index(i), &place{above: at, index: i})
		}
	case reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			below := &place{above: at, key: entries.Key(), index: -1}
			if entries.Key().Kind() == reflect.String {
				s.found(entries.Key().String(), below, bounds.NotPlain)
			}
			s.in(entries.Value(), below)
		}
	}
}

func (s *search) inStruct(v reflect.Value, at *place) {
	switch {
	case opaque.Has(v.Type()):
		return
	case v.Type() == raw:
		s.found(string(v.Interface().(runtime.RawExtension).Raw), at, bounds.NotYAML)
		return
	}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		switch {
		case !f.IsExported():
		case f.Anonymous:
			if f.Type != reflect.TypeFor[metav1.TypeMeta]() {
				below := at
				if f.Type == reflect.TypeFor[metav1.ObjectMeta]() {
					below = &place{above: at, name: "metadata", index: -1}
				}
				s.in(v.Field(i), below)
			}
		default:
			s.in(v.Field(i), &place{above: at, name: f.Name, index: -1})
		}
	}
}

// found records a string that has a rejected character.
func (s *search) found(text string, at *place, refused func(string) (rune, bool)) {
	r, odd := refused(text)
	if !odd || s.stored.Has(text) {
		return
	}
	if s.texts != nil {
		s.texts.Insert(text)
		return
	}
	s.errs = append(s.errs, field.Invalid(at.path(), fmt.Sprintf("%.64s", escaped(text)),
		fmt.Sprintf("must not have the control character U+%04X: remove it", r)))
}

// escaped returns a text in ASCII without control characters.
func escaped(text string) string {
	quoted := strconv.QuoteToASCII(text)
	return quoted[1 : len(quoted)-1]
}

// place is the location of a value in an object.
type place struct {
	above *place
	name  string
	key   reflect.Value
	index int // -1 if the value is not an item of a list
}

func (p *place) path() *field.Path {
	switch {
	case p == nil:
		return nil
	case p.name != "":
		return p.above.path().Child(jsonName(p.name))
	case p.index >= 0:
		return p.above.path().Index(p.index)
	}
	return p.above.path().Key(escaped(p.key.String()))
}

// jsonName returns the name in JSON of a field of an internal type: URL is url, and PodIP podIP.
func jsonName(name string) string {
	runes := []rune(name)
	for i := range runes {
		if i > 0 && i+1 < len(runes) && unicode.IsLower(runes[i+1]) {
			break
		}
		runes[i] = unicode.ToLower(runes[i])
		if i+1 < len(runes) && unicode.IsLower(runes[i+1]) {
			break
		}
	}
	return string(runes)
}
