// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterrequest is the registry of clusterrequests of clusters.openmcp.cloud.
package clusterrequest

import (
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/validation"
	hubgeneric "github.com/clusterhub/clusterhub/pkg/registry/generic"
)

// Kind is the kind ClusterRequest.
var Kind = &hubgeneric.Kind[*openmcp.ClusterRequest]{
	Resource:   openmcp.Resource("clusterrequests"),
	Singular:   "clusterrequest",
	ShortNames: []string{"cr", "creq"},
	Namespaced: true,
	Versions:   []schema.GroupVersion{v1alpha1.SchemeGroupVersion},

	New:     func() *openmcp.ClusterRequest { return &openmcp.ClusterRequest{} },
	NewList: func() runtime.Object { return &openmcp.ClusterRequestList{} },
	Table:   tableConvertor,

	Spec:   func(c *openmcp.ClusterRequest) any { return &c.Spec },
	Status: func(c *openmcp.ClusterRequest) any { return &c.Status },
	Fields: func(c *openmcp.ClusterRequest) fields.Set {
		return fields.Set{"spec.purpose": c.Spec.Purpose, "status.phase": c.Status.Phase}
	},

	Validate:             validation.ValidateClusterRequest,
	ValidateUpdate:       validation.ValidateClusterRequestUpdate,
	ValidateStatusUpdate: validation.ValidateClusterRequestStatusUpdate,
}
