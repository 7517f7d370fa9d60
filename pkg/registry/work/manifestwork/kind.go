// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifestwork is the registry of works.
package manifestwork

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/work"
	v1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/work/validation"
	hubgeneric "github.com/clusterhub/clusterhub/pkg/registry/generic"
	"github.com/clusterhub/clusterhub/pkg/registry/table"
	"github.com/clusterhub/clusterhub/pkg/registry/work/rulecheck"
	"github.com/clusterhub/clusterhub/pkg/registry/work/rulematch"
)

var spec = field.NewPath("spec")

// Kind is the kind ManifestWork.
var Kind = &hubgeneric.Kind[*work.ManifestWork]{
	Resource:   work.Resource("manifestworks"),
	Singular:   "manifestwork",
	Namespaced: true,
	Versions:   []schema.GroupVersion{v1.SchemeGroupVersion},

	New:     func() *work.ManifestWork { return &work.ManifestWork{} },
	NewList: func() runtime.Object { return &work.ManifestWorkList{} },
	Table:   table.NameAndAge[*work.ManifestWork](),

	Spec:   func(w *work.ManifestWork) any { return &w.Spec },
	Status: func(w *work.ManifestWork) any { return &w.Status },

	PrepareForCreate: func(w *work.ManifestWork) { validation.Canonical(w.Spec.Workload.Manifests, nil) },
	PrepareForUpdate: func(w, old *work.ManifestWork) {
		validation.Canonical(w.Spec.Workload.Manifests, old.Spec.Workload.Manifests)
	},

	Refuse:    validation.BadManifestWork,
	MaxWeight: validation.MostWeight,
	Validate: func(w *work.ManifestWork) field.ErrorList {
		return rulecheck.Validate(validation.ValidateManifestWork(w), &w.Spec, &work.ManifestWorkSpec{}, spec)
	},
	ValidateUpdate: func(w, old *work.ManifestWork) field.ErrorList {
		return rulecheck.Validate(validation.ValidateManifestWorkUpdate(w, old), &w.Spec, &old.Spec, spec)
	},
	Warnings: func(w *work.ManifestWork) []string {
		return append(rulecheck.Warnings(&w.Spec, spec), rulematch.Warnings(&w.Spec, spec)...)
	},
	ValidateStatusUpdate: validation.ValidateManifestWorkStatusUpdate,
}
