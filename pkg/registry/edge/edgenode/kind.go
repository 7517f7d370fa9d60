// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package edgenode is the registry of edge nodes.
package edgenode

import (
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterhub/clusterhub/pkg/apis/edge"
	"github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/apis/edge/validation"
	"github.com/clusterhub/clusterhub/pkg/edge/model"
	hubgeneric "github.com/clusterhub/clusterhub/pkg/registry/generic"
)

var languages = model.Languages()

// Kind is the kind EdgeNode.
var Kind = &hubgeneric.Kind[*edge.EdgeNode]{
	Resource:   edge.Resource("edgenodes"),
	Singular:   "edgenode",
	ShortNames: []string{"enode"},
	Categories: []string{"edge"},
	Versions:   []schema.GroupVersion{v1alpha1.SchemeGroupVersion},

	New:     func() *edge.EdgeNode { return &edge.EdgeNode{} },
	NewList: func() runtime.Object { return &edge.EdgeNodeList{} },
	Table:   tableConvertor,

	Spec:   func(n *edge.EdgeNode) any { return &n.Spec },
	Status: func(n *edge.EdgeNode) any { return &n.Status },
	Fields: func(n *edge.EdgeNode) fields.Set {
		return fields.Set{"spec.nodeType": string(n.Spec.NodeType), "spec.pattern": n.Spec.Pattern, "status.namespace": n.Status.Namespace}
	},

	Validate: func(n *edge.EdgeNode) field.ErrorList { return validation.ValidateEdgeNode(n, languages) },
	ValidateUpdate: func(n, old *edge.EdgeNode) field.ErrorList {
		return validation.ValidateEdgeNodeUpdate(n, old, languages)
	},
	ValidateStatusUpdate: validation.ValidateEdgeNodeStatusUpdate,
}
