// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package revision is the registry of revisions of replica sets of works.
package revision

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterhub/clusterhub/pkg/apis/work"
	"github.com/clusterhub/clusterhub/pkg/apis/work/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/apis/work/validation"
	hubgeneric "github.com/clusterhub/clusterhub/pkg/registry/generic"
	"github.com/clusterhub/clusterhub/pkg/registry/table"
)

// Kind is the kind ManifestWorkReplicaSetRevision.
var Kind = &hubgeneric.Kind[*work.ManifestWorkReplicaSetRevision]{
	Resource:   work.Resource("manifestworkreplicasetrevisions"),
	Singular:   "manifestworkreplicasetrevision",
	ShortNames: []string{"mwrsr"},
	Namespaced: true,
	Versions:   []schema.GroupVersion{v1alpha1.SchemeGroupVersion},

	New:     func() *work.ManifestWorkReplicaSetRevision { return &work.ManifestWorkReplicaSetRevision{} },
	NewList: func() runtime.Object { return &work.ManifestWorkReplicaSetRevisionList{} },
	Table:   tableConvertor,

	Spec: func(r *work.ManifestWorkReplicaSetRevision) any { return &r.Spec },
	// The revisions of a set are listed by its label.
	IndexedLabels: []string{work.ReplicaSetLabel},

	PrepareForCreate: func(r *work.ManifestWorkReplicaSetRevision) {
		validation.Canonical(r.Spec.ManifestWorkTemplate.Workload.Manifests, nil)
	},
	PrepareForUpdate: func(r, old *work.ManifestWorkReplicaSetRevision) {
		validation.Canonical(r.Spec.ManifestWorkTemplate.Workload.Manifests, old.Spec.ManifestWorkTemplate.Workload.Manifests)
	},

	MaxWeight:      validation.MostWeight,
	Validate:       validation.ValidateManifestWorkReplicaSetRevision,
	ValidateUpdate: validation.ValidateManifestWorkReplicaSetRevisionUpdate,
}

var tableConvertor = table.Convertor[*work.ManifestWorkReplicaSetRevision]{
	Columns: []metav1.TableColumnDefinition{
		table.Name(),
		{Name: "ReplicaSet", Type: "string", Description: "The ManifestWorkReplicaSet of the template."},
		{Name: "Revision", Type: "integer", Description: "The generation of the ManifestWorkReplicaSet that had the template. It is larger for later templates."},
		{Name: "Manifests", Type: "integer", Description: "The number of manifests in the template."},
		table.Age(),
	},
	Cells: func(r *work.ManifestWorkReplicaSetRevision) []any {
		return []any{r.Name, r.Spec.ReplicaSet, r.Spec.Revision, len(r.Spec.ManifestWorkTemplate.Workload.Manifests), table.AgeCell(&r.ObjectMeta)}
	},
}
