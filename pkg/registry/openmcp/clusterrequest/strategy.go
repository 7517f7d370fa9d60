// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterrequest is the registry of clusterrequests of clusters.openmcp.cloud.
package clusterrequest

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

var versions = []string{"clusters.openmcp.cloud/v1alpha1"}

// strategy is how clusterrequests themselves are created and updated.
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
	o := obj.(*openmcp.ClusterRequest)
	o.Status = openmcp.ClusterRequestStatus{}
	o.Generation = 1
}

func (strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	updated, existing := obj.(*openmcp.ClusterRequest), old.(*openmcp.ClusterRequest)
	updated.Status = existing.Status
	updated.Generation = existing.Generation
	if !equality.Semantic.DeepEqual(updated.Spec, existing.Spec) {
		updated.Generation++
	}
}

func (strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validation.ValidateClusterRequest(obj.(*openmcp.ClusterRequest))
}

func (strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateClusterRequestUpdate(obj.(*openmcp.ClusterRequest), old.(*openmcp.ClusterRequest))
}

// statusStrategy lets through a change of the status and nothing else.
type statusStrategy struct{ strategy }

func (statusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return hubgeneric.ResetFields(versions, fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("metadata"))
}

func (statusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	updated, existing := obj.(*openmcp.ClusterRequest), old.(*openmcp.ClusterRequest)
	updated.Spec = existing.Spec
	hubgeneric.KeepMeta(&updated.ObjectMeta, &existing.ObjectMeta)
}

func (statusStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateClusterRequestStatusUpdate(obj.(*openmcp.ClusterRequest), old.(*openmcp.ClusterRequest))
}

func getAttrs(obj runtime.Object) (labels.Set, fields.Set, error) {
	r, ok := obj.(*openmcp.ClusterRequest)
	if !ok {
		return nil, nil, fmt.Errorf("%T is no ClusterRequest", obj)
	}
	return r.Labels, fields.Set{
		"metadata.name":      r.Name,
		"metadata.namespace": r.Namespace,
		"spec.purpose":       r.Spec.Purpose,
		"status.phase":       r.Status.Phase,
	}, nil
}

func predicate(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
	return storage.SelectionPredicate{Label: label, Field: field, GetAttrs: getAttrs}
}
