// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package appliedmanifestwork is the registry of the records of works of the agent of the hub's own cluster.
package appliedmanifestwork

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterhub/clusterhub/pkg/apis/work"
	v1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/work/validation"
	hubgeneric "github.com/clusterhub/clusterhub/pkg/registry/generic"
	"github.com/clusterhub/clusterhub/pkg/registry/table"
)

// Kind is the kind AppliedManifestWork.
var Kind = &hubgeneric.Kind[*work.AppliedManifestWork]{
	Resource: work.Resource("appliedmanifestworks"),
	Singular: "appliedmanifestwork",
	Versions: []schema.GroupVersion{v1.SchemeGroupVersion},

	New:     func() *work.AppliedManifestWork { return &work.AppliedManifestWork{} },
	NewList: func() runtime.Object { return &work.AppliedManifestWorkList{} },
	Table:   table.NameAndAge[*work.AppliedManifestWork](),

	Spec:   func(w *work.AppliedManifestWork) any { return &w.Spec },
	Status: func(w *work.AppliedManifestWork) any { return &w.Status },

	MaxWeight:            validation.MostWeight,
	Validate:             validation.ValidateAppliedManifestWork,
	ValidateUpdate:       validation.ValidateAppliedManifestWorkUpdate,
	ValidateStatusUpdate: validation.ValidateAppliedManifestWorkUpdate,
}
