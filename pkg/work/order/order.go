// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package order computes the order in which the manifests of a work are applied, dependencies first, and in which its objects are deleted.
package order

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
)

// steps are the kinds that are applied one after the other, those of a step in the order of the spec. Versions do not matter.
var steps = [][]schema.GroupKind{
	{
		{Group: "scheduling.k8s.io", Kind: "PriorityClass"},
		{Kind: "Namespace"},
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"},
		{Group: "storage.k8s.io", Kind: "StorageClass"},
		{Kind: "PersistentVolume"},
		{Group: "policy", Kind: "PodSecurityPolicy"},
	},
	{
		{Group: "rbac.authorization.k8s.io", Kind: "Role"},
		{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"},
		{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"},
		{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"},
	},
	{
		{Group: "networking.k8s.io", Kind: "NetworkPolicy"},
		{Kind: "ResourceQuota"},
		{Kind: "LimitRange"},
		{Group: "policy", Kind: "PodDisruptionBudget"},
		{Kind: "ServiceAccount"},
	},
	{
		{Kind: "Secret"},
		{Kind: "ConfigMap"},
		{Kind: "PersistentVolumeClaim"},
	},
	{
		{Kind: "Service"},
	},
	{
		{Group: "apps", Kind: "DaemonSet"},
		{Kind: "Pod"},
		{Kind: "ReplicationController"},
		{Group: "apps", Kind: "ReplicaSet"},
		{Group: "apps", Kind: "Deployment"},
		{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"},
		{Group: "apps", Kind: "StatefulSet"},
		{Group: "batch", Kind: "Job"},
		{Group: "batch", Kind: "CronJob"},
	},
	{
		// They send requests to objects of earlier steps.
		{Group: "apiregistration.k8s.io", Kind: "APIService"},
		{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"},
		{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"},
		{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicy"},
		{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicyBinding"},
		{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicy"},
		{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicyBinding"},
	},
}

var stepOf = func() map[schema.GroupKind]int {
	of := map[schema.GroupKind]int{}
	for step, kinds := range steps {
		for _, kind := range kinds {
			of[kind] = step
		}
	}
	return of
}()

// Apply returns the order in which to apply manifests, as indices in the spec, which are also their ordinals in the status. A manifest that could not
// be parsed is nil, and is last.
func Apply(manifests []*unstructured.Unstructured) []int {
	indices := make([]int, len(manifests))
	for i := range indices {
		indices[i] = i
	}
	slices.SortStableFunc(indices, func(a, b int) int { return step(manifests[a]) - step(manifests[b]) })
	return indices
}

func step(manifest *unstructured.Unstructured) int {
	if manifest == nil || manifest.Object == nil {
		return len(steps) + 1
	}
	if step, ok := stepOf[manifest.GroupVersionKind().GroupKind()]; ok {
		return step
	}
	return len(steps)
}

// Object is an object to be deleted.
type Object struct {
	schema.GroupResource
	Name string
}

// Delete returns the steps in which objects are deleted, as indices; a step may be empty. The first are the custom resources of kinds that are among
// the objects, since their finalizers need running controllers; then workloads; then the rest, in the reverse order in which they are applied.
func Delete(objects []Object) [][]int {
	defined := sets.New[string]()
	for _, o := range objects {
		if o.Group == "apiextensions.k8s.io" && o.Resource == "customresourcedefinitions" {
			defined.Insert(o.Name)
		}
	}
	result := make([][]int, len(steps)+3)
	for i, o := range objects {
		step, ok := stepOfResource[o.GroupResource]
		switch {
		case defined.Has(o.String()):
			step = 0
		case ok && step == running:
			step = 1
		case ok:
			step = len(steps) - step + 2
		default:
			step = 2 // unknown kinds are applied last
		}
		result[step] = append(result[step], i)
	}
	return result
}

// running is the step of workloads.
const running = 5

var stepOfResource = func() map[schema.GroupResource]int {
	of := map[schema.GroupResource]int{}
	for kind, step := range stepOf {
		plural, _ := meta.UnsafeGuessKindToResource(kind.WithVersion(""))
		of[plural.GroupResource()] = step
	}
	return of
}()
