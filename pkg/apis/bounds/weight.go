// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// mostFaults is the maximum number of reported faults of one object. Kubernetes joins them to one text in quadratic time, and a few
	// bytes of a request can cause a fault.
	mostFaults = 64

	// The minimum number of bytes that an item adds to its content when it is stored: the quotes and commas of a string, or the names of fields.
	textWeight   = 3
	objectWeight = 12
)

// First returns the first faults of a long list, and an error with the number of the others.
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

// Heavier reports whether the strings and items of an object have more bytes than the maximum. It runs before all other work on a request: it
// encodes nothing, and its time is limited by the maximum.
func Heavier(object any, most int) bool {
	s := scale{left: most}
	s.add(reflect.ValueOf(object))
	return s.left < 0
}

// scale adds up the weight of values until the limit is exceeded.
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
			// Fields that are not exported are not part of the wire format.
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
