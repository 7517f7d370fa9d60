// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package generic

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
)

// Updated is called for a written update, in the context of its request. It must not block, nor modify the objects.
type Updated func(ctx context.Context, updated, old runtime.Object)

// OnUpdate calls f for all updates, including those through subresources. It must be called before the resource is served.
func (r *Resource) OnUpdate(f Updated) {
	r.updated = f
	for _, subresource := range r.Subresources {
		subresource.updated = f
	}
}

// update updates an object of the store, and calls f. Hooks of the store are called before it writes.
func (f Updated) update(
	ctx context.Context, store *genericregistry.Store, c checks, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc,
	updateValidation rest.ValidateObjectUpdateFunc, forceAllowCreate bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	var old runtime.Object // that of the last attempt
	objInfo = rest.WrapUpdatedObjectInfo(c.checked(input{objInfo}), func(_ context.Context, updated, existing runtime.Object) (runtime.Object, error) {
		old = existing
		return updated, nil
	})
	updated, created, err := store.Update(ctx, name, objInfo, createValidation, updateValidation, forceAllowCreate, options)
	if f != nil && err == nil && !created && old != nil && !dryrun.IsDryRun(options.DryRun) {
		f(ctx, updated, old)
	}
	return updated, created, err
}
