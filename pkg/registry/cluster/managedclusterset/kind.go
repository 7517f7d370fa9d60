// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package managedclusterset is the registry of managedclustersets.
package managedclusterset

import (
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/selector"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/validation"
	hubgeneric "github.com/clusterhub/clusterhub/pkg/registry/generic"
)

// Kind is the kind ManagedClusterSet.
var Kind = &hubgeneric.Kind[*cluster.ManagedClusterSet]{
	Resource:   cluster.Resource("managedclustersets"),
	Singular:   "managedclusterset",
	ShortNames: []string{"mclset", "mclsets"},
	Versions:   []schema.GroupVersion{v1beta1.SchemeGroupVersion, v1beta2.SchemeGroupVersion},

	New:     func() *cluster.ManagedClusterSet { return &cluster.ManagedClusterSet{} },
	NewList: func() runtime.Object { return &cluster.ManagedClusterSetList{} },
	Table:   tableConvertor,

	Spec:   func(s *cluster.ManagedClusterSet) any { return &s.Spec },
	Status: func(s *cluster.ManagedClusterSet) any { return &s.Status },
	Fields: func(s *cluster.ManagedClusterSet) fields.Set {
		key, value, _ := selector.ExclusivePair(s)
		return fields.Set{
			"spec.clusterSelector.selectorType":         string(s.Spec.ClusterSelector.SelectorType),
			"spec.clusterSelector.exclusiveLabel.key":   key,
			"spec.clusterSelector.exclusiveLabel.value": value,
		}
	},

	Validate:             validation.ValidateManagedClusterSet,
	ValidateUpdate:       validation.ValidateManagedClusterSetUpdate,
	ValidateStatusUpdate: validation.ValidateManagedClusterSetStatusUpdate,
	Customize:            withDryRun,
}
