// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"bytes"
	"maps"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// isApplied reports whether no request is needed for a manager to apply an object.
func (w *write) isApplied(next *unstructured.Unstructured, manager string) bool {
	if w.have == nil || !unchanged(w.have, next, manager, w.Reported) {
		return false
	}
	_, former := w.formerEntries(manager)
	return len(former) == 0
}

// unchanged reports whether applying next as a manager would change nothing in have: the manager has applied exactly these fields, in the same
// version, and they have the values of next. same means that next is known to be what the manager applied last.
//
// Only the server knows the schema. The managedFields of have stand in for it, and where they do not determine how a server would merge the two, the
// result is false, as for everything that a server might change in next: nulls, empty lists, numbers and quantities in another notation.
func unchanged(have, next *unstructured.Unstructured, manager string, same bool) bool {
	own, others := ownedBy(manager, have, next.GetAPIVersion())
	if own == nil || have.GroupVersionKind() != next.GroupVersionKind() {
		return false
	}
	wanted := maps.Clone(next.Object)
	// Servers record no manager for these.
	delete(wanted, "apiVersion")
	delete(wanted, "kind")
	if metadata, ok := wanted["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		delete(metadata, "name")
		delete(metadata, "namespace")
		wanted["metadata"] = metadata
		if len(metadata) == 0 {
			delete(wanted, "metadata")
		}
	}
	// The group of a custom resource has a dot.
	c := comparison{same: same, builtIn: !strings.Contains(next.GroupVersionKind().Group, ".")}
	return c.maps(wanted, have.Object, fieldsOf{own, others})
}

// ownedBy returns the fields that a manager applied in a version, or nil if it did not, and those of all other entries.
func ownedBy(manager string, object *unstructured.Unstructured, version string) (own, others *fieldpath.Set) {
	others = fieldpath.NewSet()
	for _, e := range object.GetManagedFields() {
		fields := fieldpath.NewSet()
		if e.FieldsV1 == nil || fields.FromJSON(bytes.NewReader(e.FieldsV1.GetRawBytes())) != nil {
			return nil, nil
		}
		switch {
		case e.Manager != manager || e.Operation != metav1.ManagedFieldsOperationApply || e.Subresource != "":
			others = others.Union(fields)
		case own != nil || e.APIVersion != version:
			return nil, nil
		default:
			own = fields
		}
	}
	return own, others
}

// fieldsOf are the fields below a path: those that a manager applied, and those of all others. Both may be nil.
type fieldsOf struct{ own, others *fieldpath.Set }

// size returns the number of fields or items that the manager applied directly below the path.
func (f fieldsOf) size() int {
	n := f.own.Members.Size()
	f.own.Children.Iterate(func(e fieldpath.PathElement) {
		if !f.own.Members.Has(e) {
			n++
		}
	})
	return n
}

// keys returns the names of the fields that identify the items of a list; none if items are identified by their values. ok is false if the path is
// not that of a list.
func (f fieldsOf) keys() (names []string, ok bool) {
	ok = true
	visit := func(e fieldpath.PathElement) {
		switch {
		case e.Key != nil && names == nil:
			for _, field := range *e.Key {
				names = append(names, field.Name)
			}
		case e.Key == nil && e.Value == nil:
			ok = false
		}
	}
	f.own.Members.Iterate(visit)
	f.own.Children.Iterate(visit)
	return names, ok
}

type comparison struct{ same, builtIn bool }

// maps compares the fields of two maps that a manager applied.
func (c comparison) maps(want, have map[string]any, f fieldsOf) bool {
	if len(want) != f.size() {
		return false // a field was added to the manifest, or removed
	}
	for key, value := range want {
		if there, ok := have[key]; !ok || !c.values(value, there, fieldpath.FieldNameElement(key), f) {
			return false
		}
	}
	return true
}

// values compares two values whose path ends with an element below f.
func (c comparison) values(want, have any, e fieldpath.PathElement, f fieldsOf) bool {
	below, ok := f.own.Children.Get(e)
	var others *fieldpath.Set
	if f.others != nil {
		others, _ = f.others.Children.Get(e)
	}
	if !ok {
		return f.own.Members.Has(e) && c.isWhole(want, e, others) && reflect.DeepEqual(want, have)
	}
	switch want := want.(type) {
	case map[string]any:
		have, ok := have.(map[string]any)
		return ok && c.maps(want, have, fieldsOf{below, others})
	case []any:
		have, ok := have.([]any)
		return ok && c.lists(want, have, fieldsOf{below, others})
	}
	return false
}

// isWhole reports whether a value was applied as a whole, given that no fields are recorded below it. An empty map or a null that had no fields when
// it was applied is recorded in the same way.
func (c comparison) isWhole(want any, e fieldpath.PathElement, others *fieldpath.Set) bool {
	size := 0
	switch want := want.(type) {
	case nil:
		return false
	case map[string]any:
		size = len(want)
		if size == 0 {
			return others == nil
		}
	case []any:
		size = len(want)
		if size == 0 {
			return false // a list with keys would not be recorded at all
		}
	default:
		return true
	}
	// The keys of an item would be recorded below it.
	return others == nil && (c.same || e.Key != nil)
}

// lists compares the items of two lists with keys, or sets, that a manager applied. Their order must be the same: servers change it.
func (c comparison) lists(want, have []any, f fieldsOf) bool {
	names, ok := f.keys()
	if !ok || len(want) != f.size() {
		return false
	}
	const twice = -1
	at := fieldpath.MakePathElementMap(len(have))
	for i, item := range have {
		e, ok := c.elementOf(item, names)
		if !ok {
			return false
		}
		if _, ok := at.Get(e); ok {
			i = twice
		}
		at.Insert(e, i)
	}
	last := twice
	for _, item := range want {
		e, ok := c.elementOf(item, names)
		if !ok {
			return false
		}
		i, ok := at.Get(e)
		if !ok || i.(int) <= last || !c.values(item, have[i.(int)], e, f) {
			return false
		}
		last = i.(int)
	}
	return true
}

// elementOf returns the path element of an item of a list.
func (c comparison) elementOf(item any, names []string) (e fieldpath.PathElement, ok bool) {
	object, isMap := item.(map[string]any)
	if len(names) == 0 {
		_, isList := item.([]any)
		return fieldpath.ValueElement(value.NewValueInterface(item)), !isMap && !isList && item != nil
	}
	var fields []value.Field
	for _, name := range names {
		key := object[name]
		if key == nil && name == "protocol" && c.builtIn {
			key = "TCP" // the only list key that has a default in Kubernetes' schemas
		}
		if key == nil {
			return e, false
		}
		fields = append(fields, value.Field{Name: name, Value: value.NewValueInterface(key)})
	}
	return fieldpath.KeyElement(fields...), true
}
