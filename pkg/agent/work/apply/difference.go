// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Repair is a change of an object by another program that Apply has undone.
type Repair struct {
	// Field is the first field that differed, as a path. It is empty if the object was deleted.
	Field string
	// Manager is the field manager that set the field last. It is empty if it is not known: then the server or an admission plugin may have set it.
	Manager string
}

// RepairOf returns how an object differed before it was applied; before is nil if it did not exist.
func RepairOf(before, after *unstructured.Unstructured) Repair {
	if before == nil {
		return Repair{}
	}
	field := difference(content(before), content(after), nil)
	return Repair{Field: "." + strings.Join(field, "."), Manager: managerOf(before, field)}
}

// difference returns the path of the first value in which two objects differ. A list counts as one value.
func difference(a, b map[string]any, path []string) []string {
	keys := slices.Sorted(maps.Keys(a))
	for key := range maps.Keys(b) {
		if _, ok := a[key]; !ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		if equality.Semantic.DeepEqual(a[key], b[key]) {
			continue
		}
		below, ok1 := a[key].(map[string]any)
		other, ok2 := b[key].(map[string]any)
		if ok1 && ok2 {
			return difference(below, other, append(path, key))
		}
		return append(path, key)
	}
	return path
}

// managerOf returns the manager that last set a field, or a part of it, other than those of works.
func managerOf(object *unstructured.Unstructured, path []string) string {
	var last metav1.ManagedFieldsEntry
	for _, entry := range object.GetManagedFields() {
		fields := map[string]any{}
		if strings.HasPrefix(entry.Manager, DefaultManager) || entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		owned, ok := fieldNode(fields), true
		for _, key := range path {
			owned, ok = below(owned, "f:"+key)
			if !ok {
				break
			}
		}
		if ok && (last.Manager == "" || last.Time.Before(entry.Time)) {
			last = entry
		}
	}
	return last.Manager
}

// String returns what was changed, and by which program, as the beginning of a sentence.
func (r Repair) String() string {
	by := "another program"
	if r.Manager != "" {
		by = fmt.Sprintf("%q", r.Manager)
	}
	if r.Field == "" {
		return "The object is deleted by " + by
	}
	return fmt.Sprintf("The field %s is changed by %s", r.Field, by)
}
