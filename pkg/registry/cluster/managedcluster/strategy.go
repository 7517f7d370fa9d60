// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package managedcluster is the registry of managedclusters and their subresources.
package managedcluster

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

var versions = []string{"cluster.open-cluster-management.io/v1"}

// strategy is how managedclusters themselves are created and updated. Who may change which label, and who may accept
// a cluster, is decided in pkg/admission, which no path goes around.
type strategy struct{ hubgeneric.Strategy }

var (
	_ rest.RESTCreateStrategy  = strategy{}
	_ rest.RESTUpdateStrategy  = strategy{}
	_ rest.RESTDeleteStrategy  = strategy{}
	_ rest.ResetFieldsStrategy = strategy{}
)

func (strategy) NamespaceScoped() bool { return false }

func (strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return hubgeneric.ResetFields(versions, fieldpath.MakePathOrDie("status"))
}

func (strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	c := obj.(*cluster.ManagedCluster)
	c.Status = cluster.ManagedClusterStatus{}
	c.Generation = 1
	delete(c.Annotations, cluster.AcceptedAtAnnotation)
	validation.PrepareNewTaints(c.Spec.Taints, metav1.Now())
}

func (strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	c, o := obj.(*cluster.ManagedCluster), old.(*cluster.ManagedCluster)
	c.Status = o.Status
	validation.PrepareTaints(c.Spec.Taints, o.Spec.Taints, metav1.Now())
	noteAcceptance(c, o)
	bumpGeneration(c, o)
}

func (strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validation.ValidateManagedCluster(obj.(*cluster.ManagedCluster))
}

func (strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateManagedClusterUpdate(obj.(*cluster.ManagedCluster), old.(*cluster.ManagedCluster))
}

// noteAcceptance says since when a cluster is accepted, in an annotation that only the server writes.
func noteAcceptance(c, old *cluster.ManagedCluster) {
	at, noted := old.Annotations[cluster.AcceptedAtAnnotation]
	if c.Spec.HubAcceptsClient && !old.Spec.HubAcceptsClient {
		at, noted = time.Now().UTC().Format(time.RFC3339Nano), true
	}
	if !noted || !c.Spec.HubAcceptsClient {
		delete(c.Annotations, cluster.AcceptedAtAnnotation)
		return
	}
	if c.Annotations == nil {
		c.Annotations = map[string]string{}
	}
	c.Annotations[cluster.AcceptedAtAnnotation] = at
}

func bumpGeneration(c, old *cluster.ManagedCluster) {
	c.Generation = old.Generation
	if !equality.Semantic.DeepEqual(c.Spec, old.Spec) {
		c.Generation++
	}
}

// statusStrategy lets through a change of the status and nothing else.
type statusStrategy struct{ strategy }

func (statusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return hubgeneric.ResetFields(versions, fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("metadata"))
}

func (statusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	c, o := obj.(*cluster.ManagedCluster), old.(*cluster.ManagedCluster)
	c.Spec = o.Spec
	hubgeneric.KeepMeta(&c.ObjectMeta, &o.ObjectMeta)
}

func (statusStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return validation.ValidateManagedClusterStatusUpdate(obj.(*cluster.ManagedCluster), old.(*cluster.ManagedCluster))
}

// labelStrategy lets through a change of metadata.labels and nothing else.
type labelStrategy struct{ strategy }

func (labelStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return hubgeneric.ResetFields(versions, fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("status"),
		fieldpath.MakePathOrDie("metadata", "annotations"), fieldpath.MakePathOrDie("metadata", "finalizers"),
		fieldpath.MakePathOrDie("metadata", "ownerReferences"))
}

func (labelStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	c, o := obj.(*cluster.ManagedCluster), old.(*cluster.ManagedCluster)
	wanted := c.Labels
	hubgeneric.KeepMeta(&c.ObjectMeta, &o.ObjectMeta)
	c.Labels = wanted
	c.Spec, c.Status = o.Spec, o.Status
}

// acceptStrategy lets through a change of spec.hubAcceptsClient and nothing else.
type acceptStrategy struct{ strategy }

func (acceptStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return hubgeneric.ResetFields(versions, fieldpath.MakePathOrDie("metadata"), fieldpath.MakePathOrDie("status"),
		fieldpath.MakePathOrDie("spec", "managedClusterClientConfigs"),
		fieldpath.MakePathOrDie("spec", "leaseDurationSeconds"), fieldpath.MakePathOrDie("spec", "taints"))
}

func (acceptStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	c, o := obj.(*cluster.ManagedCluster), old.(*cluster.ManagedCluster)
	accepts := c.Spec.HubAcceptsClient
	hubgeneric.KeepMeta(&c.ObjectMeta, &o.ObjectMeta)
	o.Spec.DeepCopyInto(&c.Spec)
	c.Spec.HubAcceptsClient = accepts
	c.Status = o.Status
	noteAcceptance(c, o)
	bumpGeneration(c, o)
}

// acceptsField is the field that says whether the hub lets a cluster in.
const acceptsField = "spec.hubAcceptsClient"

func getAttrs(obj runtime.Object) (labels.Set, fields.Set, error) {
	c, ok := obj.(*cluster.ManagedCluster)
	if !ok {
		return nil, nil, fmt.Errorf("%T is no ManagedCluster", obj)
	}
	return c.Labels, fields.Set{
		"metadata.name": c.Name,
		acceptsField:    strconv.FormatBool(c.Spec.HubAcceptsClient),
	}, nil
}

func predicate(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
	return storage.SelectionPredicate{
		Label: label, Field: field, GetAttrs: getAttrs,
		IndexLabels: []string{cluster.ClusterSetLabel}, IndexFields: []string{acceptsField},
	}
}
