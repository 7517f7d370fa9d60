// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package position

import (
	"fmt"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"

	"github.com/clusterhub/clusterhub/pkg/registry/generic"
)

// FleetPrefix is the directory in etcd with the source of derived resources. Clusters, sets and visibility revisions are stored under it so that one
// watch returns the changes of all, in order.
const FleetPrefix = "/fleet"

// NameField is the field selector of an object's name.
const NameField = "metadata.name"

// Resource describes the positions of the objects of a derived resource. Each belongs to one set, which is part of its name.
type Resource struct {
	schema.GroupResource
	New     func() generic.Object
	NewList func() runtime.Object

	// Split splits the name of an object into its name within its set, and the set.
	Split func(name string) (within, set string, ok bool)
	// Fields returns the fields for field selectors, in addition to metadata.name.
	Fields func(generic.Object) fields.Set
	// WithinField and SetField are the fields with the results of Split; "" for none.
	WithinField, SetField string

	// ByName means that an object can be seen by its name or by any of the sets that it is in. It has a row for each of them: see Row. Split is nil
	// then.
	ByName bool
}

// Root returns the directory that the objects appear to have. It also has the clock.
func (r Resource) Root() string { return "/" + r.Resource }

// All returns the range of all objects, each once.
func (r Resource) All() string {
	if r.ByName {
		return r.Root() + "/name/"
	}
	return r.AllSets()
}

// AllSets returns the range of the objects of all sets.
func (r Resource) AllSets() string { return r.Root() + "/set/" }

// Rows returns the range of everything that clients may be shown.
func (r Resource) Rows() string {
	if r.ByName {
		return r.Root() + "/"
	}
	return r.AllSets()
}

// SetKey returns the range of a set's objects. It ends in a slash: no other set's key starts with it.
func (r Resource) SetKey(setName string) string { return r.AllSets() + setName + "/" }

// NameKey returns the range of the one object of a name, of a resource whose objects are seen by name. It is a range and not a key, since the cache
// has past versions of ranges only.
func (r Resource) NameKey(name string) string { return r.Root() + "/name/" + name + "/" }

// Key returns the key of one object. Keys are ordered by set and then by name, so that the objects of one set are one range.
func (r Resource) Key(within, setName string) string { return r.SetKey(setName) + within }

func (r Resource) clockKey() string { return r.Root() + "/visibility" }

func (r Resource) endKey() string { return r.Root() + "/end" }

// KeyOf returns the key of an object, of the clock, or of the end of a change.
func (r Resource) KeyOf(obj runtime.Object) (string, error) {
	object, ok := obj.(generic.Object)
	if !ok {
		return "", fmt.Errorf("%T is not one of the %s", obj, r.GroupResource)
	}
	switch {
	case object.GetName() == ClockName:
		return r.clockKey(), nil
	case object.GetName() == EndName:
		return r.endKey(), nil
	case r.ByName:
		if set, ok := RowSet(object); ok {
			return r.Key(object.GetName(), set), nil
		}
		return r.NameKey(object.GetName()) + object.GetName(), nil
	}
	within, set, ok := r.Split(object.GetName())
	if !ok {
		return "", fmt.Errorf("%q is not the name of one of the %s", object.GetName(), r.GroupResource)
	}
	return r.Key(within, set), nil
}

// Attributes returns the labels and fields of an object or of the clock, for selectors.
func (r Resource) Attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	object, ok := obj.(generic.Object)
	if !ok {
		return nil, nil, fmt.Errorf("%T is not one of the %s", obj, r.GroupResource)
	}
	if isHidden(object) {
		return labels.Set{ClockName: ""}, fields.Set{ClockName: ""}, nil
	}
	set := r.Fields(object)
	set[NameField] = object.GetName()
	return object.GetLabels(), set, nil
}

// noSet is not a valid name of a set.
const noSet = "_"

// Nothing returns a range without objects.
func (r Resource) Nothing() string { return r.SetKey(noSet) }

// Selected returns the set and the name within it that all objects have that a field selector selects, or "" where it does not specify them. It
// returns false if nothing can be selected.
func (r Resource) Selected(selector fields.Selector) (within, set string, possible bool) {
	exact := func(field string) (value string, asked bool) {
		if field == "" {
			return "", false
		}
		return selector.RequiresExactMatch(field)
	}
	if r.ByName {
		within, byName := exact(NameField)
		return within, "", !byName || Possible(within)
	}
	set, bySet := exact(r.SetField)
	within, byName := exact(r.WithinField)
	if name, ok := exact(NameField); ok {
		within, set, _ = r.Split(name)
		bySet, byName = true, true
	}
	return within, set, (!bySet || Possible(set)) && (!byName || Possible(within))
}

// Range returns the smallest range of keys that contains everything that a request selects. The cache has past versions of ranges only, so a single
// object is read as such at the latest version and as one of its set at any other.
func (r Resource) Range(opts storage.ListOptions) (key string, recursive bool) {
	within, set, possible := r.Selected(opts.Predicate.Field)
	latest := opts.ResourceVersion == "" && opts.Predicate.Continue == ""
	switch {
	case !possible:
		return r.Nothing(), true
	case set == "":
		return r.All(), true
	case within == "" || !latest:
		return r.SetKey(set), true
	default:
		return r.Key(within, set), false
	}
}

// EncodeContinue returns the token of a list of all objects that continues from a key.
func (r Resource) EncodeContinue(from string, version int64) (string, error) {
	return storage.EncodeContinue(from, r.Rows(), version)
}

// DecodeContinue decodes such a token. A version of 0 or less means the latest.
func (r Resource) DecodeContinue(token string) (from string, version int64, err error) {
	return storage.DecodeContinue(token, r.Rows())
}
