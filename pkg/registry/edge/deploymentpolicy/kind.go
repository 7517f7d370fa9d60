// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deploymentpolicy is the registry of deployment policies.
package deploymentpolicy

import (
	"k8s.io/apimachinery/pkg/fields"
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

// Kind is the kind DeploymentPolicy.
var Kind = &hubgeneric.Kind[*edge.DeploymentPolicy]{
	Resource:   edge.Resource("deploymentpolicies"),
	Singular:   "deploymentpolicy",
	ShortNames: []string{"dpol"},
	Categories: []string{"edge"},
	Namespaced: true,
	Versions:   []schema.GroupVersion{v1alpha1.SchemeGroupVersion},

	New:     func() *edge.DeploymentPolicy { return &edge.DeploymentPolicy{} },
	NewList: func() runtime.Object { return &edge.DeploymentPolicyList{} },
	Table:   tableConvertor,

	Spec:   func(p *edge.DeploymentPolicy) any { return &p.Spec },
	Status: func(p *edge.DeploymentPolicy) any { return &p.Status },
	Fields: func(p *edge.DeploymentPolicy) fields.Set {
		return fields.Set{"spec.service.name": p.Spec.Service.Name, "spec.service.org": p.Spec.Service.Org}
	},

	Stamp: author.Stamp[*edge.DeploymentPolicy](edge.AuthorAnnotation),

	Validate: func(p *edge.DeploymentPolicy) field.ErrorList {
		return validation.ValidateDeploymentPolicy(p, languages)
	},
	ValidateUpdate: func(p, old *edge.DeploymentPolicy) field.ErrorList {
		return validation.ValidateDeploymentPolicyUpdate(p, old, languages)
	},
	ValidateStatusUpdate: validation.ValidateDeploymentPolicyStatusUpdate,
}
