// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster is the registry of clusters of clusters.openmcp.cloud.
package cluster

import (
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/validation"
	hubgeneric "github.com/clusterhub/clusterhub/pkg/registry/generic"
)

// Kind is the kind Cluster.
var Kind = &hubgeneric.Kind[*openmcp.Cluster]{
	Resource:   openmcp.Resource("clusters"),
	Singular:   "cluster",
	Namespaced: true,
	Versions:   []schema.GroupVersion{v1alpha1.SchemeGroupVersion},

	New:     func() *openmcp.Cluster { return &openmcp.Cluster{} },
	NewList: func() runtime.Object { return &openmcp.ClusterList{} },
	Table:   tableConvertor,

	Spec:   func(c *openmcp.Cluster) any { return &c.Spec },
	Status: func(c *openmcp.Cluster) any { return &c.Status },
	Fields: func(c *openmcp.Cluster) fields.Set {
		return fields.Set{"spec.profile": c.Spec.Profile}
	},

	Validate:             validation.ValidateCluster,
	ValidateUpdate:       validation.ValidateClusterUpdate,
	ValidateStatusUpdate: validation.ValidateClusterStatusUpdate,
}
