// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterclaim is the registry of clusterclaims.
package clusterclaim

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/validation"
	hubgeneric "github.com/clusterhub/clusterhub/pkg/registry/generic"
	"github.com/clusterhub/clusterhub/pkg/registry/table"
)

// Kind is the kind ClusterClaim.
var Kind = &hubgeneric.Kind[*cluster.ClusterClaim]{
	Resource: cluster.Resource("clusterclaims"),
	Singular: "clusterclaim",
	Versions: []schema.GroupVersion{v1alpha1.SchemeGroupVersion},

	New:     func() *cluster.ClusterClaim { return &cluster.ClusterClaim{} },
	NewList: func() runtime.Object { return &cluster.ClusterClaimList{} },
	Table:   table.NameAndAge[*cluster.ClusterClaim](),

	Spec: func(c *cluster.ClusterClaim) any { return &c.Spec },

	Validate:       validation.ValidateClusterClaim,
	ValidateUpdate: validation.ValidateClusterClaimUpdate,
}
