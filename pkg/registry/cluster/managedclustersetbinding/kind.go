// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package managedclustersetbinding is the registry of managedclustersetbindings.
package managedclustersetbinding

import (
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta2"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/validation"
	hubgeneric "github.com/clusterhub/clusterhub/pkg/registry/generic"
)

// Kind is the kind ManagedClusterSetBinding.
var Kind = &hubgeneric.Kind[*cluster.ManagedClusterSetBinding]{
	Resource:   cluster.Resource("managedclustersetbindings"),
	Singular:   "managedclustersetbinding",
	ShortNames: []string{"mclsetbinding", "mclsetbindings"},
	Namespaced: true,
	Versions:   []schema.GroupVersion{v1beta1.SchemeGroupVersion, v1beta2.SchemeGroupVersion},

	New:     func() *cluster.ManagedClusterSetBinding { return &cluster.ManagedClusterSetBinding{} },
	NewList: func() runtime.Object { return &cluster.ManagedClusterSetBindingList{} },
	Table:   tableConvertor,

	Spec:   func(b *cluster.ManagedClusterSetBinding) any { return &b.Spec },
	Status: func(b *cluster.ManagedClusterSetBinding) any { return &b.Status },
	Fields: func(b *cluster.ManagedClusterSetBinding) fields.Set {
		return fields.Set{"spec.clusterSet": b.Spec.ClusterSet}
	},

	Validate:             validation.ValidateManagedClusterSetBinding,
	ValidateUpdate:       validation.ValidateManagedClusterSetBindingUpdate,
	ValidateStatusUpdate: validation.ValidateManagedClusterSetBindingStatusUpdate,
}
