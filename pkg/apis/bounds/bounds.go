// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bounds limits the length of fields and lists. An object that was stored before a limit existed may remain above the limit, as long
// as it does not grow.
package bounds

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Count rejects a list with more items than the maximum, unless it had as many items before.
func Count(path *field.Path, now, before, most int) field.ErrorList {
	if now <= most || now <= before {
		return nil
	}
	return field.ErrorList{field.TooMany(path, now, most)}
}

// Length rejects a value with more bytes than the maximum, unless it was as long before.
func Length(path *field.Path, value string, before, most int) field.ErrorList {
	if len(value) <= most || len(value) <= before {
		return nil
	}
	return field.ErrorList{field.TooLong(path, "" /* it is long */, most)}
}

// longest returns the length of the longest value of the items of a list, in bytes.
func longest[T any](list []T, value func(*T) string) int {
	length := 0
	for i := range list {
		length = max(length, len(value(&list[i])))
	}
	return length
}

// Each rejects items of a list whose value has more bytes than the maximum, unless an item had a value as long before.
func Each[T any](path *field.Path, name string, now, before []T, most int, value func(*T) string) field.ErrorList {
	var errs field.ErrorList
	stored := longest(before, value)
	for i := range now {
		at := path.Index(i)
		if name != "" {
			at = at.Child(name)
		}
		errs = append(errs, Length(at, value(&now[i]), stored, most)...)
	}
	return errs
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
