// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package accessrequest is the registry of accessrequests of clusters.openmcp.cloud.
package accessrequest

import (
	"context"
	"fmt"
	"time"

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

// strategy is how accessrequests themselves are created and updated.
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
	o := obj.(*openmcp.AccessRequest)
	o.Status = openmcp.AccessRequestStatus{}
	o.Generation = 1
}

func (strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	updated, existing := obj.(*openmcp.AccessRequest), old.(*openmcp.AccessRequest)
	updated.Status = existing.Status
	updated.Generation = existing.Generation
	if !equality.Semantic.DeepEqual(updated.Spec, existing.Spec) {
		updated.Generation++
	}
}

func (strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validation.ValidateAccessRequest(obj.(*openmcp.AccessRequest))
}

func (strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateAccessRequestUpdate(obj.(*openmcp.AccessRequest), old.(*openmcp.AccessRequest))
}

func (strategy) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	return validation.AccessRequestWarnings(obj.(*openmcp.AccessRequest), time.Now())
}

func (strategy) WarningsOnUpdate(_ context.Context, obj, old runtime.Object) []string {
	updated := obj.(*openmcp.AccessRequest)
	if equality.Semantic.DeepEqual(updated.Spec, old.(*openmcp.AccessRequest).Spec) {
		return nil
	}
	return validation.AccessRequestWarnings(updated, time.Now())
}

// statusStrategy lets through a change of the status and nothing else.
type statusStrategy struct{ strategy }

func (statusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return hubgeneric.ResetFields(versions, fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("metadata"))
}

func (statusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	updated, existing := obj.(*openmcp.AccessRequest), old.(*openmcp.AccessRequest)
	updated.Spec = existing.Spec
	hubgeneric.KeepMeta(&updated.ObjectMeta, &existing.ObjectMeta)
}

func (statusStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateAccessRequestStatusUpdate(obj.(*openmcp.AccessRequest), old.(*openmcp.AccessRequest))
}

func getAttrs(obj runtime.Object) (labels.Set, fields.Set, error) {
	r, ok := obj.(*openmcp.AccessRequest)
	if !ok {
		return nil, nil, fmt.Errorf("%T is no AccessRequest", obj)
	}
	set := fields.Set{
		"metadata.name":             r.Name,
		"metadata.namespace":        r.Namespace,
		"status.phase":              r.Status.Phase,
		"spec.clusterRef.name":      "",
		"spec.clusterRef.namespace": "",
	}
	if ref := r.Spec.ClusterRef; ref != nil {
		set["spec.clusterRef.name"], set["spec.clusterRef.namespace"] = ref.Name, ref.Namespace
	}
	return r.Labels, set, nil
}

func predicate(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
	return storage.SelectionPredicate{Label: label, Field: field, GetAttrs: getAttrs}
}
