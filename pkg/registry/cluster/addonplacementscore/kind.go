// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package addonplacementscore is the registry of addonplacementscores.
package addonplacementscore

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/validation"
	hubgeneric "github.com/clusterhub/clusterhub/pkg/registry/generic"
	"github.com/clusterhub/clusterhub/pkg/registry/table"
)

// Kind is the kind AddOnPlacementScore.
var Kind = &hubgeneric.Kind[*cluster.AddOnPlacementScore]{
	Resource:   cluster.Resource("addonplacementscores"),
	Singular:   "addonplacementscore",
	Namespaced: true,
	Versions:   []schema.GroupVersion{v1alpha1.SchemeGroupVersion},

	New:     func() *cluster.AddOnPlacementScore { return &cluster.AddOnPlacementScore{} },
	NewList: func() runtime.Object { return &cluster.AddOnPlacementScoreList{} },
	Table:   table.NameAndAge[*cluster.AddOnPlacementScore](),

	// Without a spec, the generation is always 1.
	Spec:   func(*cluster.AddOnPlacementScore) any { return &struct{}{} },
	Status: func(s *cluster.AddOnPlacementScore) any { return &s.Status },

	Validate:             validation.ValidateAddOnPlacementScore,
	ValidateUpdate:       validation.ValidateAddOnPlacementScoreUpdate,
	ValidateStatusUpdate: validation.ValidateAddOnPlacementScoreStatusUpdate,
}
