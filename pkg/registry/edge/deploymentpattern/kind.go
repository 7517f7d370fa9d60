// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deploymentpattern is the registry of deployment patterns.
package deploymentpattern

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/apis/edge/validation"
	"github.com/clusterhub/clusterhub/pkg/edge/model"
	"github.com/clusterhub/clusterhub/pkg/registry/author"
	hubgeneric "github.com/clusterhub/clusterhub/pkg/registry/generic"
)

var languages = model.Languages()

// Kind is the kind DeploymentPattern.
var Kind = &hubgeneric.Kind[*edge.DeploymentPattern]{
	Resource:   edge.Resource("deploymentpatterns"),
	Singular:   "deploymentpattern",
	ShortNames: []string{"dpat"},
	Categories: []string{"edge"},
	Namespaced: true,
	Versions:   []schema.GroupVersion{v1alpha1.SchemeGroupVersion},

	New:     func() *edge.DeploymentPattern { return &edge.DeploymentPattern{} },
	NewList: func() runtime.Object { return &edge.DeploymentPatternList{} },
	Table:   tableConvertor,

	Spec:   func(p *edge.DeploymentPattern) any { return &p.Spec },
	Status: func(p *edge.DeploymentPattern) any { return &p.Status },

	Stamp: author.Stamp[*edge.DeploymentPattern](edge.AuthorAnnotation),

	Validate: func(p *edge.DeploymentPattern) field.ErrorList {
		return validation.ValidateDeploymentPattern(p, languages)
	},
	ValidateUpdate: func(p, old *edge.DeploymentPattern) field.ErrorList {
		return validation.ValidateDeploymentPatternUpdate(p, old, languages)
	},
	ValidateStatusUpdate: validation.ValidateDeploymentPatternStatusUpdate,
}
