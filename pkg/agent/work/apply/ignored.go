// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// withIgnored returns reduced with the additional fields of whole, with their values in have, if the manager owns them there. The manager applied
// them when it created the object: if they were left out, the server would remove them.
func withIgnored(whole, reduced, have *unstructured.Unstructured, manager string) *unstructured.Unstructured {
	next := reduced.DeepCopy()
	for _, entry := range have.GetManagedFields() {
		if entry.Manager != manager || entry.Operation != metav1.ManagedFieldsOperationApply || entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}
		fields := map[string]any{}
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) == nil {
			restore(next.Object, whole.Object, have.DeepCopy().Object, fields)
		}
	}
	return next
}

// restore adds the fields to next that only whole has, with their values in have, if they are in fields. fields is in the format of managedFields.
func restore(next, whole, have, fields map[string]any) {
	for key, wanted := range whole {
		owned, ok := below(fields, "f:"+key)
		value, there := have[key]
		if !ok || !there {
			continue
		}
		reduced, applied := next[key]
		if !applied {
			next[key] = owned.of(value)
			continue
		}
		switch reduced := reduced.(type) {
		case map[string]any:
			wanted, ok1 := wanted.(map[string]any)
			value, ok2 := value.(map[string]any)
			if ok1 && ok2 {
				restore(reduced, wanted, value, owned)
			}
		case []any:
			wanted, ok1 := wanted.([]any)
			value, ok2 := value.([]any)
			if ok1 && ok2 {
				next[key] = owned.restoreItems(reduced, wanted, value)
			}
		}
	}
}

// fieldNode is a part of managedFields. An empty node stands for everything below it.
type fieldNode map[string]any

func below(fields fieldNode, key string) (fieldNode, bool) {
	if len(fields) == 0 {
		return nil, true
	}
	child, ok := fields[key].(map[string]any)
	return child, ok
}

// restoreItems does for a list what restore does for a map. The items of a list without keys are matched by their index.
func (n fieldNode) restoreItems(next, whole, have []any) []any {
	if len(n) == 0 {
		if len(next) != len(whole) || len(next) != len(have) {
			return next
		}
		for i := range next {
			reduced, ok1 := next[i].(map[string]any)
			wanted, ok2 := whole[i].(map[string]any)
			value, ok3 := have[i].(map[string]any)
			if ok1 && ok2 && ok3 {
				restore(reduced, wanted, value, nil)
			}
		}
		return next
	}
	for id := range n {
		matches := itemOf(id)
		if matches == nil {
			continue
		}
		of := func(list []any) int { return slices.IndexFunc(list, matches) }
		inNext, inWhole, inHave := of(next), of(whole), of(have)
		owned, _ := below(n, id)
		switch {
		case inWhole < 0 || inHave < 0:
		case inNext < 0:
			next = append(next, owned.of(have[inHave]))
		default:
			reduced, ok1 := next[inNext].(map[string]any)
			wanted, ok2 := whole[inWhole].(map[string]any)
			value, ok3 := have[inHave].(map[string]any)
			if ok1 && ok2 && ok3 {
				restore(reduced, wanted, value, owned)
			}
		}
	}
	return next
}

// of returns the parts of a value that are owned.
func (n fieldNode) of(value any) any {
	if len(n) == 0 {
		return value
	}
	switch value := value.(type) {
	case map[string]any:
		part := map[string]any{}
		for key := range n {
			if name, ok := strings.CutPrefix(key, "f:"); ok && value[name] != nil {
				owned, _ := below(n, key)
				part[name] = owned.of(value[name])
			}
		}
		return part
	case []any:
		part := []any{}
		for _, item := range value {
			for id := range n {
				if matches := itemOf(id); matches != nil && matches(item) {
					owned, _ := below(n, id)
					part = append(part, owned.of(item))
				}
			}
		}
		return part
	}
	return value
}

// itemOf returns a function that matches the list item of a key of managedFields: k: has the keys of a map, and v: is a value. It returns nil for
// other keys.
func itemOf(id string) func(any) bool {
	kind, text, _ := strings.Cut(id, ":")
	var want any
	if kind != "k" && kind != "v" || json.Unmarshal([]byte(text), &want) != nil {
		return nil
	}
	return func(item any) bool {
		keys, isMap := want.(map[string]any)
		if !isMap || kind == "v" {
			return equal(item, want)
		}
		object, ok := item.(map[string]any)
		for key, value := range keys {
			has := object[key]
			if has == nil && key == "protocol" {
				has = "TCP" // the only list key that has a default in Kubernetes' schemas
			}
			ok = ok && equal(has, value)
		}
		return ok
	}
}

// equal reports whether two values of JSON are equal. An integer may be a float.
func equal(a, b any) bool {
	if n, ok := a.(int64); ok {
		a = float64(n)
	}
	return reflect.DeepEqual(a, b)
}
