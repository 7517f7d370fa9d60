// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package managedclustersetbinding is the registry of managedclustersetbindings.
package managedclustersetbinding

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/validation"
	hubgeneric "github.com/clusterhub/clusterhub/pkg/registry/generic"
)

var versions = []string{
	"cluster.open-cluster-management.io/v1beta1",
	"cluster.open-cluster-management.io/v1beta2",
}

// strategy is how managedclustersetbindings themselves are created and updated.
type strategy struct{ hubgeneric.Strategy }

var (
	_ rest.RESTCreateStrategy  = strategy{}
	_ rest.RESTUpdateStrategy  = strategy{}
	_ rest.RESTDeleteStrategy  = strategy{}
	_ rest.ResetFieldsStrategy = strategy{}
)

func (strategy) NamespaceScoped() bool { return true }

func (strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return hubgeneric.ResetFields(versions, fieldpath.MakePathOrDie("status"))
}

func (strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	o := obj.(*cluster.ManagedClusterSetBinding)
	o.Status = cluster.ManagedClusterSetBindingStatus{}
	o.Generation = 1
}

func (strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	updated, existing := obj.(*cluster.ManagedClusterSetBinding), old.(*cluster.ManagedClusterSetBinding)
	updated.Status = existing.Status
	updated.Generation = existing.Generation
	if !equality.Semantic.DeepEqual(updated.Spec, existing.Spec) {
		updated.Generation++
	}
}

func (strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validation.ValidateManagedClusterSetBinding(obj.(*cluster.ManagedClusterSetBinding))
}

func (strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateManagedClusterSetBindingUpdate(obj.(*cluster.ManagedClusterSetBinding), old.(*cluster.ManagedClusterSetBinding))
}

// statusStrategy lets through a change of the status and nothing else.
type statusStrategy struct{ strategy }

func (statusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return hubgeneric.ResetFields(versions, fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("metadata"))
}

func (statusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	updated, existing := obj.(*cluster.ManagedClusterSetBinding), old.(*cluster.ManagedClusterSetBinding)
	updated.Spec = existing.Spec
	hubgeneric.KeepMeta(&updated.ObjectMeta, &existing.ObjectMeta)
}

func (statusStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateManagedClusterSetBindingStatusUpdate(obj.(*cluster.ManagedClusterSetBinding), old.(*cluster.ManagedClusterSetBinding))
}

func getAttrs(obj runtime.Object) (labels.Set, fields.Set, error) {
	b, ok := obj.(*cluster.ManagedClusterSetBinding)
	if !ok {
		return nil, nil, fmt.Errorf("%T is no ManagedClusterSetBinding", obj)
	}
	return b.Labels, fields.Set{
		"metadata.name":      b.Name,
		"metadata.namespace": b.Namespace,
		"spec.clusterSet":    b.Spec.ClusterSet,
	}, nil
}

func predicate(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
	return storage.SelectionPredicate{Label: label, Field: field, GetAttrs: getAttrs}
}
