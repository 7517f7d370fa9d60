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

// FleetPrefix is the directory in etcd of what derived resources are computed from. Clusters, sets and visibility revisions are
// stored under it so that one watch sees the changes of all, in order.
const FleetPrefix = "/fleet"

// Resource says where the objects of a derived resource stand. Each belongs to one set, and its name says to which.
type Resource struct {
	schema.GroupResource
	New     func() generic.Object
	NewList func() runtime.Object

	// Split takes the name of an object apart: its name among those of its set, and the set.
	Split func(name string) (within, set string, ok bool)
	// Fields are what field selectors may ask for, besides metadata.name.
	Fields func(generic.Object) fields.Set
	// WithinField and SetField are those of the fields that have what Split returns; "" for none.
	WithinField, SetField string
}

// Root is the directory that the objects appear to have. Besides them it has the clock.
func (r Resource) Root() string { return "/" + r.Resource }

// All is the range of all objects.
func (r Resource) All() string { return r.Root() + "/set/" }

// SetKey is the range of a set's objects. It ends in a slash: no other set's key starts with it.
func (r Resource) SetKey(setName string) string { return r.All() + setName + "/" }

// Key is the key of one object. Keys are ordered by set and then by name, so that the objects of one set are one range.
func (r Resource) Key(within, setName string) string { return r.SetKey(setName) + within }

func (r Resource) clockKey() string { return r.Root() + "/visibility" }

// KeyOf is the key of an object, or of the clock.
func (r Resource) KeyOf(obj runtime.Object) (string, error) {
	object, ok := obj.(generic.Object)
	if !ok {
		return "", fmt.Errorf("%T is none of the %s", obj, r.GroupResource)
	}
	if isClock(object) {
		return r.clockKey(), nil
	}
	within, set, ok := r.Split(object.GetName())
	if !ok {
		return "", fmt.Errorf("%q is the name of none of the %s", object.GetName(), r.GroupResource)
	}
	return r.Key(within, set), nil
}

// Attributes are what selectors compare, of an object or of the clock.
func (r Resource) Attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	object, ok := obj.(generic.Object)
	if !ok {
		return nil, nil, fmt.Errorf("%T is none of the %s", obj, r.GroupResource)
	}
	if isClock(object) {
		return labels.Set{ClockName: ""}, fields.Set{ClockName: ""}, nil
	}
	set := r.Fields(object)
	set["metadata.name"] = object.GetName()
	return object.GetLabels(), set, nil
}

// noSet is not the name of a set, and cannot be.
const noSet = "_"

// Nothing is a range without objects.
func (r Resource) Nothing() string { return r.SetKey(noSet) }

// Selected are the set and the name in it that all have that a field selector selects, "" where it does not say. It is false
// when nothing can be selected.
func (r Resource) Selected(selector fields.Selector) (within, set string, possible bool) {
	exact := func(field string) (value string, asked bool) {
		if field == "" {
			return "", false
		}
		return selector.RequiresExactMatch(field)
	}
	set, bySet := exact(r.SetField)
	within, byName := exact(r.WithinField)
	if name, ok := exact("metadata.name"); ok {
		within, set, _ = r.Split(name)
		bySet, byName = true, true
	}
	return within, set, (!bySet || Possible(set)) && (!byName || Possible(within))
}

// Range is the smallest range of keys that holds all that a request selects. The cache keeps past versions of ranges
// only, so that a single object is read as such at the latest version and as one of its set at any other.
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

// EncodeContinue is the token of a list of all objects that goes on from a key.
func (r Resource) EncodeContinue(from string, version int64) (string, error) {
	return storage.EncodeContinue(from, r.All(), version)
}

// DecodeContinue reads such a token. A version of 0 or less means the latest.
func (r Resource) DecodeContinue(token string) (from string, version int64, err error) {
	return storage.DecodeContinue(token, r.All())
}
