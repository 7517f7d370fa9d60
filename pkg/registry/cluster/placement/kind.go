// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package placement is the registry of placements.
package placement

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/validation"
	hubgeneric "github.com/clusterhub/clusterhub/pkg/registry/generic"
)

// Kind is the kind Placement.
var Kind = &hubgeneric.Kind[*cluster.Placement]{
	Resource:   cluster.Resource("placements"),
	Singular:   "placement",
	Namespaced: true,
	Versions:   []schema.GroupVersion{v1beta1.SchemeGroupVersion},

	New:     func() *cluster.Placement { return &cluster.Placement{} },
	NewList: func() runtime.Object { return &cluster.PlacementList{} },
	Table:   tableConvertor,

	Spec:   func(p *cluster.Placement) any { return &p.Spec },
	Status: func(p *cluster.Placement) any { return &p.Status },

	Validate:             validate,
	ValidateUpdate:       validateUpdate,
	ValidateStatusUpdate: validation.ValidatePlacementStatusUpdate,
}
