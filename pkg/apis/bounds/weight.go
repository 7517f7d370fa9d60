// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// mostFaults is the maximum number of faults of one object that are reported. Kubernetes joins them to one text in a time that grows
	// with their square, and few bytes of a request can be a fault.
	mostFaults = 64

	// What entries add to what is in them, at least, when they are stored: quotes and commas of a text, and names of fields.
	textWeight   = 3
	objectWeight = 12
)

// First are the first faults of many, with the number of the others.
func First(errs field.ErrorList) field.ErrorList {
	if len(errs) <= mostFaults {
		return errs
	}
	more := len(errs) - mostFaults
	return append(errs[:mostFaults:mostFaults], &field.Error{
		Type: field.ErrorTypeTooMany, Field: errs[mostFaults].Field, BadValue: field.OmitValueType{},
		Detail: fmt.Sprintf("%d more errors are not listed: correct these first", more),
	})
}

// Heavier reports whether an object has more bytes in its texts and entries than the most. It takes no more time than so many
// bytes need, and encodes nothing: it comes before all other work on a request.
func Heavier(object any, most int) bool {
	s := scale{left: most}
	s.add(reflect.ValueOf(object))
	return s.left < 0
}

// scale weighs until nothing is left.
type scale struct{ left int }

func (s *scale) add(v reflect.Value) {
	if s.left < 0 {
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			s.add(v.Elem())
		}
	case reflect.String:
		s.left -= v.Len()
	case reflect.Struct:
		for i := range v.NumField() {
			// What is not exported is not sent.
			if v.Type().Field(i).IsExported() {
				s.add(v.Field(i))
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			s.left -= v.Len()
			return
		}
		for i := 0; i < v.Len() && s.left >= 0; i++ {
			s.entry(v.Index(i))
		}
	case reflect.Map:
		for entries := v.MapRange(); s.left >= 0 && entries.Next(); {
			s.entry(entries.Key())
			s.add(entries.Value())
		}
	}
}

func (s *scale) entry(v reflect.Value) {
	if v.Kind() == reflect.String {
		s.left -= textWeight
	} else {
		s.left -= objectWeight
	}
	s.add(v)
}
