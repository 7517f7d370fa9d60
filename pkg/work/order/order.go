// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package order says in which order the manifests of a work are applied: what others need comes first.
package order

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// steps are the kinds that are applied one after the other, those of a step in the order of the spec. Versions do not count.
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
		// They send requests to what was made before.
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

// Apply is the order in which to apply manifests: their indices in the spec, which are their ordinals in the status. A manifest
// that could not be parsed is nil, and comes last.
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
