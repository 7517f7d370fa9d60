// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bounds limits how long fields and lists may be. An object that was stored before there was a bound may stay above
// it, as long as it does not grow.
package bounds

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Count refuses more entries than the most, unless there were as many before.
func Count(path *field.Path, now, before, most int) field.ErrorList {
	if now <= most || now <= before {
		return nil
	}
	return field.ErrorList{field.TooMany(path, now, most)}
}

// Length refuses a value of more bytes than the most, unless one before was as long.
func Length(path *field.Path, value string, before, most int) field.ErrorList {
	if len(value) <= most || len(value) <= before {
		return nil
	}
	return field.ErrorList{field.TooLong(path, "" /* it is long */, most)}
}

// Longest is the length in bytes of the longest of some values.
func Longest[T any](list []T, value func(*T) string) int {
	longest := 0
	for i := range list {
		longest = max(longest, len(value(&list[i])))
	}
	return longest
}

// Each refuses entries of a list that have a value of more bytes than the most, unless one was as long before.
func Each[T any](path *field.Path, name string, now, before []T, most int, value func(*T) string) field.ErrorList {
	var errs field.ErrorList
	stored := Longest(before, value)
	for i := range now {
		at := path.Index(i)
		if name != "" {
			at = at.Child(name)
		}
		errs = append(errs, Length(at, value(&now[i]), stored, most)...)
	}
	return errs
}

// Filled refuses an empty value, and one of more bytes than the most.
func Filled(path *field.Path, value string, most int) field.ErrorList {
	switch {
	case value == "":
		return field.ErrorList{field.Required(path, "must not be empty")}
	case len(value) > most:
		return field.ErrorList{field.TooLong(path, value, most)}
	}
	return nil
}

// OneOf rejects a value that is not in values.
func OneOf[T ~string](path *field.Path, value T, values []T) field.ErrorList {
	for _, v := range values {
		if v == value {
			return nil
		}
	}
	return field.ErrorList{field.NotSupported(path, value, values)}
}
