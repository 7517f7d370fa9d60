// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package generic has the common parts of the registries of our kinds.
package generic

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// SubresourceREST serves a subresource that takes the whole object and changes one part of it, like the approval of certificate signing requests.
type SubresourceREST struct {
	store   *genericregistry.Store
	updated Updated
	checks  checks
}

var (
	_ rest.Patcher              = &SubresourceREST{}
	_ rest.ResetFieldsStrategy  = &SubresourceREST{}
	_ rest.TableConvertor       = &SubresourceREST{}
	_ rest.SingularNameProvider = &Storage{}
)

// UpdateStrategy is the strategy of a subresource: which part changes, and which fields do not.
type UpdateStrategy interface {
	rest.RESTUpdateStrategy
	rest.ResetFieldsStrategy
}

// NewSubresource returns the subresource of a store for the changes that the strategy allows.
func NewSubresource(store *genericregistry.Store, strategy UpdateStrategy) *SubresourceREST {
	sub := *store
	sub.CreateStrategy = nil
	sub.UpdateStrategy = strategy
	sub.ResetFieldsStrategy = strategy
	return &SubresourceREST{store: &sub}
}

// New implements rest.Storage.
func (r *SubresourceREST) New() runtime.Object { return r.store.New() }

// Destroy implements rest.Storage. The store belongs to the main resource.
func (r *SubresourceREST) Destroy() {}

// Get implements rest.Getter.
func (r *SubresourceREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	if err := CheckVersion("resourceVersion", options.ResourceVersion); err != nil {
		return nil, err
	}
	return r.store.Get(ctx, name, options)
}

// Update implements rest.Updater. A subresource never creates its object, not even by server-side apply.
func (r *SubresourceREST) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return r.updated.update(ctx, r.store, r.checks, name, objInfo, createValidation, updateValidation, false, options)
}

// GetResetFields implements rest.ResetFieldsStrategy.
func (r *SubresourceREST) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return r.store.GetResetFields()
}

// ConvertToTable implements rest.TableConvertor.
func (r *SubresourceREST) ConvertToTable(ctx context.Context, object, tableOptions runtime.Object) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, object, tableOptions)
}

// Storage is a main resource with its short names and categories. It rejects invalid resource versions, which the store would not report as errors of
// the client.
type Storage struct {
	*genericregistry.Store
	Short   []string
	In      []string
	updated Updated
	checks  checks
}

var (
	_ rest.StandardStorage    = &Storage{}
	_ rest.ShortNamesProvider = &Storage{}
	_ rest.CategoriesProvider = &Storage{}
)

// ShortNames implements rest.ShortNamesProvider.
func (s *Storage) ShortNames() []string { return s.Short }

// Categories implements rest.CategoriesProvider.
func (s *Storage) Categories() []string { return s.In }

// Get implements rest.Getter.
func (s *Storage) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	if err := CheckVersion("resourceVersion", options.ResourceVersion); err != nil {
		return nil, err
	}
	return s.Store.Get(ctx, name, options)
}

// List implements rest.Lister.
func (s *Storage) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	if err := checkList(options); err != nil {
		return nil, err
	}
	return s.Store.List(ctx, options)
}

// Watch implements rest.Watcher.
func (s *Storage) Watch(ctx context.Context, options *internalversion.ListOptions) (watch.Interface, error) {
	if err := checkList(options); err != nil {
		return nil, err
	}
	return s.Store.Watch(ctx, options)
}

// Create implements rest.Creater.
func (s *Storage) Create(ctx context.Context, obj runtime.Object, createValidation rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	if err := s.checks.checkNew(obj); err != nil {
		return nil, err
	}
	return s.Store.Create(ctx, obj, createValidation, options)
}

// Update implements rest.Updater.
func (s *Storage) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return s.updated.update(ctx, s.Store, s.checks, name, objInfo, createValidation, updateValidation, forceAllowCreate, options)
}
