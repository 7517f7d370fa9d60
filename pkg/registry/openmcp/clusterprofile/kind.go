// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterprofile is the registry of clusterprofiles of clusters.openmcp.cloud.
package clusterprofile

import (
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/validation"
	hubgeneric "github.com/clusterhub/clusterhub/pkg/registry/generic"
)

// Kind is the kind ClusterProfile.
var Kind = &hubgeneric.Kind[*openmcp.ClusterProfile]{
	Resource:   openmcp.Resource("clusterprofiles"),
	Singular:   "clusterprofile",
	ShortNames: []string{"cprof", "profile"},
	Versions:   []schema.GroupVersion{v1alpha1.SchemeGroupVersion},

	New:     func() *openmcp.ClusterProfile { return &openmcp.ClusterProfile{} },
	NewList: func() runtime.Object { return &openmcp.ClusterProfileList{} },
	Table:   tableConvertor,

	Spec: func(c *openmcp.ClusterProfile) any { return &c.Spec },
	Fields: func(c *openmcp.ClusterProfile) fields.Set {
		return fields.Set{
			"spec.providerRef.name":       c.Spec.ProviderRef.Name,
			"spec.providerConfigRef.name": c.Spec.ProviderConfigRef.Name,
		}
	},

	Validate:       validation.ValidateClusterProfile,
	ValidateUpdate: validation.ValidateClusterProfileUpdate,
	Warnings:       validation.ClusterProfileWarnings,
}
