// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifestworkreplicaset is the registry of replica sets of works.
package manifestworkreplicaset

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/work"
	"github.com/clusterhub/clusterhub/pkg/apis/work/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/apis/work/validation"
	"github.com/clusterhub/clusterhub/pkg/registry/author"
	hubgeneric "github.com/clusterhub/clusterhub/pkg/registry/generic"
	"github.com/clusterhub/clusterhub/pkg/registry/work/rulecheck"
	"github.com/clusterhub/clusterhub/pkg/registry/work/rulematch"
)

var template = field.NewPath("spec", "manifestWorkTemplate")

// Kind is the kind ManifestWorkReplicaSet.
var Kind = &hubgeneric.Kind[*work.ManifestWorkReplicaSet]{
	Resource:   work.Resource("manifestworkreplicasets"),
	Singular:   "manifestworkreplicaset",
	ShortNames: []string{"mwrs"},
	Namespaced: true,
	Versions:   []schema.GroupVersion{v1alpha1.SchemeGroupVersion},

	New:     func() *work.ManifestWorkReplicaSet { return &work.ManifestWorkReplicaSet{} },
	NewList: func() runtime.Object { return &work.ManifestWorkReplicaSetList{} },
	Table:   tableConvertor,

	Spec:   func(s *work.ManifestWorkReplicaSet) any { return &s.Spec },
	Status: func(s *work.ManifestWorkReplicaSet) any { return &s.Status },

	PrepareForCreate: func(s *work.ManifestWorkReplicaSet) {
		validation.Canonical(s.Spec.ManifestWorkTemplate.Workload.Manifests, nil)
	},
	PrepareForUpdate: func(s, old *work.ManifestWorkReplicaSet) {
		validation.Canonical(s.Spec.ManifestWorkTemplate.Workload.Manifests, old.Spec.ManifestWorkTemplate.Workload.Manifests)
	},
	Stamp: author.Stamp[*work.ManifestWorkReplicaSet](work.AuthorAnnotation),

	Refuse:    validation.BadManifestWorkReplicaSet,
	MaxWeight: validation.MostWeight,
	Validate: func(s *work.ManifestWorkReplicaSet) field.ErrorList {
		return rulecheck.Validate(validation.ValidateManifestWorkReplicaSet(s), &s.Spec.ManifestWorkTemplate, &work.ManifestWorkSpec{}, template)
	},
	ValidateUpdate: func(s, old *work.ManifestWorkReplicaSet) field.ErrorList {
		return rulecheck.Validate(validation.ValidateManifestWorkReplicaSetUpdate(s, old), &s.Spec.ManifestWorkTemplate, &old.Spec.ManifestWorkTemplate, template)
	},
	Warnings: func(s *work.ManifestWorkReplicaSet) []string {
		return append(rulecheck.Warnings(&s.Spec.ManifestWorkTemplate, template), rulematch.Warnings(&s.Spec.ManifestWorkTemplate, template)...)
	},
	ValidateStatusUpdate: validation.ValidateManifestWorkReplicaSetStatusUpdate,
}
