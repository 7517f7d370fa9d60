// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package placementdecision is the registry of placementdecisions.
package placementdecision

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/validation"
	hubgeneric "github.com/clusterhub/clusterhub/pkg/registry/generic"
	"github.com/clusterhub/clusterhub/pkg/registry/table"
)

// Kind is the kind PlacementDecision.
var Kind = &hubgeneric.Kind[*cluster.PlacementDecision]{
	Resource:   cluster.Resource("placementdecisions"),
	Singular:   "placementdecision",
	Namespaced: true,
	Versions:   []schema.GroupVersion{v1beta1.SchemeGroupVersion},

	New:     func() *cluster.PlacementDecision { return &cluster.PlacementDecision{} },
	NewList: func() runtime.Object { return &cluster.PlacementDecisionList{} },
	Table:   table.NameAndAge[*cluster.PlacementDecision](),

	// Without a spec, the generation is always 1.
	Spec:   func(*cluster.PlacementDecision) any { return &struct{}{} },
	Status: func(d *cluster.PlacementDecision) any { return &d.Status },
	// Clients that follow a placement list its decisions by this label.
	IndexedLabels: []string{cluster.PlacementLabel},

	Validate:             validation.ValidatePlacementDecision,
	ValidateUpdate:       validation.ValidatePlacementDecisionUpdate,
	ValidateStatusUpdate: validation.ValidatePlacementDecisionStatusUpdate,
}
