// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterprofile is the registry of clusterprofiles of clusters.openmcp.cloud.
package clusterprofile

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

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/validation"
	hubgeneric "github.com/clusterhub/clusterhub/pkg/registry/generic"
)

// strategy is how clusterprofiles are created and updated.
type strategy struct{ hubgeneric.Strategy }

var (
	_ rest.RESTCreateStrategy  = strategy{}
	_ rest.RESTUpdateStrategy  = strategy{}
	_ rest.RESTDeleteStrategy  = strategy{}
	_ rest.ResetFieldsStrategy = strategy{}
)

func (strategy) NamespaceScoped() bool { return false }

func (strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set { return nil }

func (strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	o := obj.(*openmcp.ClusterProfile)
	o.Generation = 1
}

func (strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	updated, existing := obj.(*openmcp.ClusterProfile), old.(*openmcp.ClusterProfile)
	updated.Generation = existing.Generation
	if !equality.Semantic.DeepEqual(updated.Spec, existing.Spec) {
		updated.Generation++
	}
}

func (strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validation.ValidateClusterProfile(obj.(*openmcp.ClusterProfile))
}

func (strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateClusterProfileUpdate(obj.(*openmcp.ClusterProfile), old.(*openmcp.ClusterProfile))
}

func (strategy) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	return validation.ClusterProfileWarnings(obj.(*openmcp.ClusterProfile))
}

func getAttrs(obj runtime.Object) (labels.Set, fields.Set, error) {
	p, ok := obj.(*openmcp.ClusterProfile)
	if !ok {
		return nil, nil, fmt.Errorf("%T is no ClusterProfile", obj)
	}
	return p.Labels, fields.Set{
		"metadata.name":               p.Name,
		"spec.providerRef.name":       p.Spec.ProviderRef.Name,
		"spec.providerConfigRef.name": p.Spec.ProviderConfigRef.Name,
	}, nil
}

func predicate(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
	return storage.SelectionPredicate{Label: label, Field: field, GetAttrs: getAttrs}
}
