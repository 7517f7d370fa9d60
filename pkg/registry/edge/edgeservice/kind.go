// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package edgeservice is the registry of edge services.
package edgeservice

import (
	"bytes"
	"context"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/apis/edge/validation"
	"github.com/clusterhub/clusterhub/pkg/edge/archive"
	"github.com/clusterhub/clusterhub/pkg/edge/model"
	"github.com/clusterhub/clusterhub/pkg/registry/author"
	hubgeneric "github.com/clusterhub/clusterhub/pkg/registry/generic"
)

var languages = model.Languages()

// Kind is the kind EdgeService. Its status describes the content of the archive.
var Kind = &hubgeneric.Kind[*edge.EdgeService]{
	Resource:   edge.Resource("edgeservices"),
	Singular:   "edgeservice",
	ShortNames: []string{"esvc"},
	Categories: []string{"edge"},
	Namespaced: true,
	Versions:   []schema.GroupVersion{v1alpha1.SchemeGroupVersion},

	New:     func() *edge.EdgeService { return &edge.EdgeService{} },
	NewList: func() runtime.Object { return &edge.EdgeServiceList{} },
	Table:   tableConvertor,

	Spec:           func(s *edge.EdgeService) any { return &s.Spec },
	Status:         func(s *edge.EdgeService) any { return &s.Status },
	StatusComputed: true,
	Fields: func(s *edge.EdgeService) fields.Set {
		return fields.Set{"spec.url": s.Spec.URL, "spec.version": s.Spec.Version, "spec.arch": s.Spec.Arch}
	},
	IndexedFields: []string{"spec.url"},

	Stamp:     stamp,
	MaxWeight: validation.MostWeight,
	Validate: func(s *edge.EdgeService) field.ErrorList {
		return append(validation.ValidateEdgeService(s, languages), unreadable(s)...)
	},
	ValidateUpdate: func(s, old *edge.EdgeService) field.ErrorList {
		return append(validation.ValidateEdgeServiceUpdate(s, old, languages), unreadable(s)...)
	},
}

var stampAuthor = author.Stamp[*edge.EdgeService](edge.AuthorAnnotation)

// stamp sets the fields that the hub computes: the status, and the author of the spec.
func stamp(ctx context.Context, s, old *edge.EdgeService, changed bool) {
	readArchive(s, old)
	stampAuthor(ctx, s, old, changed)
}

// readArchive writes the content of the archive to the status, once for each archive. Without a status, the archive could not be read.
func readArchive(s, old *edge.EdgeService) {
	if archiveOf(s) != nil && bytes.Equal(archiveOf(s), archiveOf(old)) {
		return // It has the status of the stored object.
	}
	s.Status = edge.EdgeServiceStatus{}
	if packed := archiveOf(s); len(packed) > 0 && len(packed) <= validation.MaxArchive {
		if a, err := archive.ReadPacked(packed); err == nil {
			found := model.ServiceStatus(&a.Contents)
			found.ObservedGeneration = s.Generation
			utilruntime.Must(v1alpha1.Convert_v1alpha1_EdgeServiceStatus_To_edge_EdgeServiceStatus(&found, &s.Status, nil))
		}
	}
}

// unreadable returns the error of an archive that has no status.
func unreadable(s *edge.EdgeService) field.ErrorList {
	packed := archiveOf(s)
	if len(packed) == 0 || len(packed) > validation.MaxArchive || s.Status.ObservedGeneration > 0 {
		return nil // The first two errors are found by validation.
	}
	if _, err := archive.ReadPacked(packed); err != nil {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "clusterDeployment", "operatorYamlArchive"), field.OmitValueType{}, err.Error())}
	}
	return nil
}

func archiveOf(s *edge.EdgeService) []byte {
	if s.Spec.ClusterDeployment == nil {
		return nil
	}
	return s.Spec.ClusterDeployment.OperatorYamlArchive
}
