// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package generic holds what the registries of our kinds share.
package generic

import (
	"context"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
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
	return r.store.Update(ctx, name, checked(objInfo), createValidation, updateValidation, false, options)
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

var (
	_ rest.ShortNamesProvider = &Storage{}
	_ rest.Updater            = &Storage{}
)

// ShortNames implements rest.ShortNamesProvider.
func (s *Storage) ShortNames() []string { return s.Short }

// Update implements rest.Updater.
func (s *Storage) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return s.Store.Update(ctx, name, checked(objInfo), createValidation, updateValidation, forceAllowCreate, options)
}

// checked refuses a resource version that is none. The store would take it for a failure of its own.
func checked(objInfo rest.UpdatedObjectInfo) rest.UpdatedObjectInfo {
	return rest.WrapUpdatedObjectInfo(objInfo, func(_ context.Context, updated, _ runtime.Object) (runtime.Object, error) {
		object, err := meta.Accessor(updated)
		if err != nil {
			return nil, err
		}
		version := object.GetResourceVersion()
		if _, err := strconv.ParseUint(version, 10, 64); version != "" && err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("metadata.resourceVersion: %q is no version that this server has given out", version))
		}
		return updated, nil
	})
}
