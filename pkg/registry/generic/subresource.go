// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package generic holds what the registries of our kinds share.
package generic

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// SubresourceREST serves a subresource that takes the whole object and changes one part of it, in the manner of the
// approval of certificate signing requests.
type SubresourceREST struct {
	store *genericregistry.Store
}

var (
	_ rest.Patcher              = &SubresourceREST{}
	_ rest.ResetFieldsStrategy  = &SubresourceREST{}
	_ rest.TableConvertor       = &SubresourceREST{}
	_ rest.SingularNameProvider = &Storage{}
)

// UpdateStrategy is what a subresource needs: which part changes, and which fields do not.
type UpdateStrategy interface {
	rest.RESTUpdateStrategy
	rest.ResetFieldsStrategy
}

// NewSubresource returns the subresource of a store that changes what the strategy lets through.
func NewSubresource(store *genericregistry.Store, strategy UpdateStrategy) *SubresourceREST {
	sub := *store
	sub.CreateStrategy = nil
	sub.UpdateStrategy = strategy
	sub.ResetFieldsStrategy = strategy
	return &SubresourceREST{store: &sub}
}

// New implements rest.Storage.
func (r *SubresourceREST) New() runtime.Object { return r.store.New() }

// Destroy implements rest.Storage; the store belongs to the main resource.
func (r *SubresourceREST) Destroy() {}

// Get implements rest.Getter.
func (r *SubresourceREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return r.store.Get(ctx, name, options)
}

// Update implements rest.Updater. A subresource never creates its object, not even by server-side apply.
func (r *SubresourceREST) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return r.store.Update(ctx, name, objInfo, createValidation, updateValidation, false, options)
}

// GetResetFields implements rest.ResetFieldsStrategy.
func (r *SubresourceREST) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return r.store.GetResetFields()
}

// ConvertToTable implements rest.TableConvertor.
func (r *SubresourceREST) ConvertToTable(ctx context.Context, object, tableOptions runtime.Object) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, object, tableOptions)
}

// Storage is a main resource with its short names.
type Storage struct {
	*genericregistry.Store
	Short []string
}

var _ rest.ShortNamesProvider = &Storage{}

// ShortNames implements rest.ShortNamesProvider.
func (s *Storage) ShortNames() []string { return s.Short }
