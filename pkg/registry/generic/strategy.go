// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package generic

import (
	"context"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/clusterhub/clusterhub/pkg/apis/bounds"
)

// strategy is the strategy for creates and updates of a kind. An update creates nothing, and must have the resource version that it is based on when
// it is not a patch. The number of reported errors of an object is limited.
type strategy[T Object] struct {
	*runtime.Scheme
	names.NameGenerator
	kind *Kind[T]
}

var (
	_ rest.RESTCreateStrategy  = strategy[Object]{}
	_ rest.RESTUpdateStrategy  = strategy[Object]{}
	_ rest.RESTDeleteStrategy  = strategy[Object]{}
	_ rest.ResetFieldsStrategy = strategy[Object]{}
)

func (k *Kind[T]) strategy(scheme *runtime.Scheme) strategy[T] {
	return strategy[T]{Scheme: scheme, NameGenerator: names.SimpleNameGenerator, kind: k}
}

func (s strategy[T]) NamespaceScoped() bool { return s.kind.Namespaced }

func (strategy[T]) AllowCreateOnUpdate(context.Context) bool { return false }

func (strategy[T]) AllowUnconditionalUpdate(context.Context) bool { return false }

func (strategy[T]) Canonicalize(runtime.Object) {}

func (s strategy[T]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	if s.kind.Status == nil {
		return nil
	}
	return s.kind.resetFields(fieldpath.MakePathOrDie("status"))
}

// resetFields returns the fields that a strategy ignores, for server-side apply, for each served version.
func (k *Kind[T]) resetFields(paths ...fieldpath.Path) map[fieldpath.APIVersion]*fieldpath.Set {
	result := make(map[fieldpath.APIVersion]*fieldpath.Set, len(k.Versions))
	for _, version := range k.Versions {
		result[fieldpath.APIVersion(version.String())] = fieldpath.NewSet(paths...)
	}
	return result
}

func (s strategy[T]) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	object := obj.(T)
	if s.kind.Status != nil {
		assign(s.kind.Status(object), s.kind.Status(s.kind.New()))
	}
	object.SetGeneration(1)
	if s.kind.PrepareForCreate != nil {
		s.kind.PrepareForCreate(object)
	}
	if s.kind.Stamp != nil {
		s.kind.Stamp(ctx, object, s.kind.New(), true)
	}
}

func (s strategy[T]) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	updated, existing := obj.(T), old.(T)
	if s.kind.Status != nil {
		assign(s.kind.Status(updated), s.kind.Status(existing))
	}
	if s.kind.PrepareForUpdate != nil {
		s.kind.PrepareForUpdate(updated, existing)
	}
	s.countGeneration(updated, existing)
	if s.kind.Stamp != nil {
		s.kind.Stamp(ctx, updated, existing, s.changed(updated, existing))
	}
}

// countGeneration increments the generation if the spec changed.
func (s strategy[T]) countGeneration(updated, old T) {
	updated.SetGeneration(old.GetGeneration())
	if s.changed(updated, old) {
		updated.SetGeneration(old.GetGeneration() + 1)
	}
}

func (s strategy[T]) changed(updated, old T) bool {
	return !equality.Semantic.DeepEqual(s.kind.Spec(updated), s.kind.Spec(old))
}

func (s strategy[T]) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	errs := bounds.Declared(ctx, s.Scheme, s.version(ctx), obj, nil)
	if len(errs) == 0 {
		errs = s.kind.Validate(obj.(T))
	}
	return bounds.First(errs)
}

func (s strategy[T]) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	return s.validateUpdate(ctx, obj.(T), old.(T), s.kind.ValidateUpdate)
}

func (s strategy[T]) validateUpdate(ctx context.Context, updated, old T, validate func(updated, old T) field.ErrorList) field.ErrorList {
	errs := bounds.Declared(ctx, s.Scheme, s.version(ctx), updated, old)
	if len(errs) == 0 {
		errs = validate(updated, old)
	}
	return bounds.First(errs)
}

// version returns the API version of the request, so that errors name the fields of that version. Without a request it returns the storage version.
func (s strategy[T]) version(ctx context.Context) schema.GroupVersion {
	if request, ok := genericapirequest.RequestInfoFrom(ctx); ok {
		if version := (schema.GroupVersion{Group: request.APIGroup, Version: request.APIVersion}); slices.Contains(s.kind.Versions, version) {
			return version
		}
	}
	return s.kind.Versions[0]
}

func (s strategy[T]) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	return s.warnings(obj.(T))
}

func (s strategy[T]) WarningsOnUpdate(_ context.Context, obj, old runtime.Object) []string {
	if updated := obj.(T); s.changed(updated, old.(T)) {
		return s.warnings(updated)
	}
	return nil
}

func (s strategy[T]) warnings(object T) []string {
	if s.kind.Warnings == nil {
		return nil
	}
	return s.kind.Warnings(object)
}

// partStrategy allows a change of a part and nothing else.
type partStrategy[T Object] struct {
	strategy[T]
	part Part[T]
}

func (s partStrategy[T]) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return s.kind.resetFields(s.part.Others...)
}

func (s partStrategy[T]) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	updated, existing := obj.(T), old.(T)
	sent := s.kind.New()
	assign(sent, updated)
	// A copy: the old object may belong to the cache.
	assign(updated, existing.DeepCopyObject())
	// The version and the UID are the client's preconditions, not fields that it changes.
	updated.SetResourceVersion(sent.GetResourceVersion())
	updated.SetUID(sent.GetUID())
	updated.SetManagedFields(sent.GetManagedFields())
	s.part.Take(updated, sent, existing)
	s.countGeneration(updated, existing)
}

func (s partStrategy[T]) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	validate := s.part.Validate
	if validate == nil {
		validate = s.kind.ValidateUpdate
	}
	return s.validateUpdate(ctx, obj.(T), old.(T), validate)
}

// assign does *to = *from for two pointers of the same type.
func assign(to, from any) { reflect.ValueOf(to).Elem().Set(reflect.ValueOf(from).Elem()) }
