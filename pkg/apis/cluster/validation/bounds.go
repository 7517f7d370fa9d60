// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/bounds"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
)

// What agents and tenants may write where upstream's CustomResourceDefinitions have no bound: far above what any of upstream's
// programs writes. docs/operating.md has the table.
const (
	maxClientConfigs     = 64
	maxURL               = 2048
	maxCABundle          = 64 << 10
	maxTaints            = 128
	maxConditions        = 128
	maxResources         = 512
	maxResourceName      = 317
	maxKubernetesVersion = 256
	maxClaims            = cluster.MaxClusterClaims
	maxClusterNamespaces = 1024
	maxSetNamespaces     = 256
	maxRequirements      = 128
	maxValues            = 1024

	maxPlacementSets     = 256
	maxPredicates        = 64
	maxExpressions       = 16
	maxAllExpressions    = 64
	maxExpression        = 4096
	maxPrioritizers      = 64
	maxSpreadConstraints = 8
	maxTolerations       = 128
	maxNamedGroups       = 128
	maxGroups            = 2048
	maxGroupDecisions    = 1024
	maxRateLimit         = 16
	maxDecisions         = 100
	maxReason            = 1024
	maxScores            = 512
)

func boundClusterSpec(spec, old *cluster.ManagedClusterSpec, path *field.Path) field.ErrorList {
	configs := path.Child("managedClusterClientConfigs")
	errs := bounds.Count(configs, len(spec.ManagedClusterClientConfigs), len(old.ManagedClusterClientConfigs), maxClientConfigs)
	errs = append(errs, bounds.Each(configs, "url", spec.ManagedClusterClientConfigs, old.ManagedClusterClientConfigs, maxURL,
		func(c *cluster.ClientConfig) string { return c.URL })...)
	errs = append(errs, bounds.Each(configs, "caBundle", spec.ManagedClusterClientConfigs, old.ManagedClusterClientConfigs, maxCABundle,
		func(c *cluster.ClientConfig) string { return string(c.CABundle) })...)
	return append(errs, bounds.Count(path.Child("taints"), len(spec.Taints), len(old.Taints), maxTaints)...)
}

func boundClusterStatus(status, old *cluster.ManagedClusterStatus, path *field.Path) field.ErrorList {
	errs := boundConditions(status.Conditions, old.Conditions, path)
	errs = append(errs, boundResources(status.Capacity, old.Capacity, path.Child("capacity"))...)
	errs = append(errs, boundResources(status.Allocatable, old.Allocatable, path.Child("allocatable"))...)
	errs = append(errs, bounds.Length(path.Child("version", "kubernetes"), status.Version.Kubernetes, len(old.Version.Kubernetes), maxKubernetesVersion)...)
	errs = append(errs, bounds.Count(path.Child("clusterClaims"), len(status.ClusterClaims), len(old.ClusterClaims), maxClaims)...)
	namespaces := path.Child("managedNamespaces")
	errs = append(errs, bounds.Count(namespaces, len(status.ManagedNamespaces), len(old.ManagedNamespaces), maxClusterNamespaces)...)
	before := 0
	for i := range old.ManagedNamespaces {
		before = max(before, len(old.ManagedNamespaces[i].Conditions))
	}
	for i, n := range status.ManagedNamespaces {
		errs = append(errs, bounds.Count(namespaces.Index(i).Child("conditions"), len(n.Conditions), before, maxConditions)...)
	}
	return errs
}

func boundResources(list, old cluster.ResourceList, path *field.Path) field.ErrorList {
	errs := bounds.Count(path, len(list), len(old), maxResources)
	for name := range list {
		if _, stored := old[name]; !stored {
			errs = append(errs, bounds.Length(path.Key("name"), string(name), 0, maxResourceName)...)
		}
	}
	return errs
}

func boundConditions(conditions, old []metav1.Condition, status *field.Path) field.ErrorList {
	return bounds.Count(status.Child("conditions"), len(conditions), len(old), maxConditions)
}

func boundSetSpec(spec, old *cluster.ManagedClusterSetSpec, path *field.Path) field.ErrorList {
	errs := bounds.Count(path.Child("managedNamespaces"), len(spec.ManagedNamespaces), len(old.ManagedNamespaces), maxSetNamespaces)
	now, before := spec.ClusterSelector.LabelSelector, old.ClusterSelector.LabelSelector
	if now == nil {
		return errs
	}
	if before == nil {
		before = &metav1.LabelSelector{}
	}
	return append(errs, boundSelector(now, before, path.Child("clusterSelector", "labelSelector"))...)
}

func boundSelector(now, old *metav1.LabelSelector, path *field.Path) field.ErrorList {
	errs := bounds.Count(path.Child("matchLabels"), len(now.MatchLabels), len(old.MatchLabels), maxRequirements)
	return append(errs, boundRequirements(now.MatchExpressions, old.MatchExpressions, path.Child("matchExpressions"))...)
}

func boundRequirements(now, old []metav1.LabelSelectorRequirement, path *field.Path) field.ErrorList {
	errs := bounds.Count(path, len(now), len(old), maxRequirements)
	stored := 0
	for i := range old {
		stored = max(stored, len(old[i].Values))
	}
	for i := range now {
		errs = append(errs, bounds.Count(path.Index(i).Child("values"), len(now[i].Values), stored, maxValues)...)
	}
	return errs
}
