// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package generic

import (
	"context"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/clusterhub/clusterhub/pkg/registry/table"
)

// Object is a pointer to an object of the API.
type Object interface {
	runtime.Object
	metav1.Object
	metav1.ObjectMetaAccessor
}

// Kind describes one stored kind. Its storage, strategies and selectors are derived from it. Functions may be nil.
type Kind[T Object] struct {
	// Resource is the kind's plural. Singular and ShortNames are further names for kubectl.
	Resource   schema.GroupResource
	Singular   string
	ShortNames []string
	// Categories are the names under which kubectl groups the kind with others.
	Categories []string
	Namespaced bool
	// Versions are the served versions. The kind is stored in the first, which must be able to express all of it.
	Versions []schema.GroupVersion

	New     func() T
	NewList func() runtime.Object
	Table   table.Convertor[T]

	// Spec and Status point to the parts of an object. Status is nil for a kind without one.
	Spec, Status func(T) any
	// StatusComputed means that no user writes the status: Stamp computes it from the spec, and it has no subresource.
	StatusComputed bool
	// Fields returns the fields for field selectors, in addition to name and namespace.
	Fields func(T) fields.Set
	// IndexedLabels and IndexedFields are indexed for lists.
	IndexedLabels, IndexedFields []string

	// PrepareForCreate and PrepareForUpdate set what the server decides, in addition to status and generation. They are not called for writes of a
	// part.
	PrepareForCreate func(object T)
	PrepareForUpdate func(updated, old T)
	// Stamp records who wrote what. changed is true for an object that is new, or has a changed spec; the old object of a new one is empty. It is not
	// called for writes of a part.
	Stamp          func(ctx context.Context, updated, old T, changed bool)
	Validate       func(object T) field.ErrorList
	ValidateUpdate func(updated, old T) field.ErrorList
	// ValidateStatusUpdate validates a write through the subresource status.
	ValidateStatusUpdate func(updated, old T) field.ErrorList
	// Refuse returns errors of the request, and not only of the object: the response is a 400 instead of the 422 of Validate, before which it is
	// called. The old object of a new one is empty. It is not called for writes of a part.
	Refuse func(updated, old T) field.ErrorList
	// MaxWeight is the maximum number of bytes in the entries of an object that is validated, if it differs from the default. The limit of stored
	// objects is in pkg/admission/objectsize.
	MaxWeight int
	// Warnings returns warnings about an object that is new or has a changed spec.
	Warnings func(object T) []string

	// Parts are further subresources, by name.
	Parts map[string]Part[T]
	// Customize modifies the store before it is completed.
	Customize func(*genericregistry.Store)
}

// Part is the part of an object that a subresource changes, like the approval of certificate signing requests.
type Part[T Object] struct {
	// Take copies the part from the sent object into a copy of the old object.
	Take func(into, sent, old T)
	// Others are the fields that do not belong to the part, for server-side apply.
	Others []fieldpath.Path
	// Validate validates the result. The default is the validation of an update of the whole object.
	Validate func(updated, old T) field.ErrorList
}

// Definition is a Kind of any type.
type Definition interface {
	// GroupResource returns the plural.
	GroupResource() schema.GroupResource
	// GroupVersions returns the served versions; the kind is stored in the first.
	GroupVersions() []schema.GroupVersion
	// NewStorage returns the one store that all versions share.
	NewStorage(*runtime.Scheme, generic.RESTOptionsGetter) (*Resource, error)
}

// GroupResource implements Definition.
func (k *Kind[T]) GroupResource() schema.GroupResource { return k.Resource }

// GroupVersions implements Definition.
func (k *Kind[T]) GroupVersions() []schema.GroupVersion { return k.Versions }

// Resource is a stored kind as it is served.
type Resource struct {
	*Storage
	// Subresources are by name. Kinds with a status have "status".
	Subresources map[string]*SubresourceREST
}

// Routes returns the storages of the resource and its subresources, by path.
func (r *Resource) Routes() map[string]rest.Storage {
	name := r.DefaultQualifiedResource.Resource
	routes := map[string]rest.Storage{name: r.Storage}
	for subresource, storage := range r.Subresources {
		routes[name+"/"+subresource] = storage
	}
	return routes
}

// NewStorage implements Definition.
func (k *Kind[T]) NewStorage(scheme *runtime.Scheme, options generic.RESTOptionsGetter) (*Resource, error) {
	main := k.strategy(scheme)
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return k.New() },
		NewListFunc:               k.NewList,
		PredicateFunc:             k.predicate,
		DefaultQualifiedResource:  k.Resource,
		SingularQualifiedResource: schema.GroupResource{Group: k.Resource.Group, Resource: k.Singular},
		CreateStrategy:            main,
		UpdateStrategy:            main,
		DeleteStrategy:            main,
		ResetFieldsStrategy:       main,
		TableConvertor:            k.Table,
	}
	if k.Customize != nil {
		k.Customize(store)
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: options, AttrFunc: k.attributes, Indexers: k.indexers()}); err != nil {
		return nil, err
	}
	resource := &Resource{
		Storage:      &Storage{Store: store, Short: k.ShortNames, In: k.Categories, checks: checks{weight: k.MaxWeight, refuse: k.refusal()}},
		Subresources: map[string]*SubresourceREST{},
	}
	for name, part := range k.parts() {
		resource.Subresources[name] = NewSubresource(store, partStrategy[T]{main, part})
		resource.Subresources[name].checks = checks{weight: k.MaxWeight}
	}
	return resource, nil
}

// parts returns the subresources, including status.
func (k *Kind[T]) parts() map[string]Part[T] {
	parts := maps.Clone(k.Parts)
	if k.Status != nil && !k.StatusComputed {
		if parts == nil {
			parts = map[string]Part[T]{}
		}
		parts["status"] = Part[T]{
			Take:     func(into, sent, _ T) { assign(k.Status(into), k.Status(sent)) },
			Others:   []fieldpath.Path{fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("metadata")},
			Validate: k.ValidateStatusUpdate,
		}
	}
	return parts
}

// attributes returns the labels and fields for selectors.
func (k *Kind[T]) attributes(object runtime.Object) (labels.Set, fields.Set, error) {
	typed, ok := object.(T)
	if !ok {
		return nil, nil, fmt.Errorf("%T is not one of the %s", object, k.Resource)
	}
	set := k.fields(typed)
	set["metadata.name"] = typed.GetName()
	if k.Namespaced {
		set["metadata.namespace"] = typed.GetNamespace()
	}
	return typed.GetLabels(), set, nil
}

func (k *Kind[T]) fields(object T) fields.Set {
	if k.Fields == nil {
		return fields.Set{}
	}
	return k.Fields(object)
}

func (k *Kind[T]) predicate(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
	return storage.SelectionPredicate{
		Label: label, Field: field, GetAttrs: k.attributes, IndexLabels: k.IndexedLabels, IndexFields: k.IndexedFields,
	}
}

// indexers returns the indexers of the store's cache.
func (k *Kind[T]) indexers() *cache.Indexers {
	if len(k.IndexedLabels)+len(k.IndexedFields) == 0 {
		return nil
	}
	indexers := cache.Indexers{}
	for _, label := range k.IndexedLabels {
		indexers[storage.LabelIndex(label)] = func(object any) ([]string, error) {
			if value, ok := object.(T).GetLabels()[label]; ok {
				return []string{value}, nil
			}
			return nil, nil
		}
	}
	for _, name := range k.IndexedFields {
		indexers[storage.FieldIndex(name)] = func(object any) ([]string, error) {
			return []string{k.fields(object.(T))[name]}, nil
		}
	}
	return &indexers
}
