// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package accessrequest is the registry of accessrequests of clusters.openmcp.cloud.
package accessrequest

import (
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/validation"
	hubgeneric "github.com/clusterhub/clusterhub/pkg/registry/generic"
)

// Kind is the kind AccessRequest.
var Kind = &hubgeneric.Kind[*openmcp.AccessRequest]{
	Resource:   openmcp.Resource("accessrequests"),
	Singular:   "accessrequest",
	ShortNames: []string{"ar", "areq"},
	Namespaced: true,
	Versions:   []schema.GroupVersion{v1alpha1.SchemeGroupVersion},

	New:     func() *openmcp.AccessRequest { return &openmcp.AccessRequest{} },
	NewList: func() runtime.Object { return &openmcp.AccessRequestList{} },
	Table:   tableConvertor,

	Spec:   func(a *openmcp.AccessRequest) any { return &a.Spec },
	Status: func(a *openmcp.AccessRequest) any { return &a.Status },
	Fields: func(a *openmcp.AccessRequest) fields.Set {
		set := fields.Set{
			"status.phase":              a.Status.Phase,
			"spec.clusterRef.name":      "",
			"spec.clusterRef.namespace": "",
		}
		if ref := a.Spec.ClusterRef; ref != nil {
			set["spec.clusterRef.name"], set["spec.clusterRef.namespace"] = ref.Name, ref.Namespace
		}
		return set
	},

	Validate:             validation.ValidateAccessRequest,
	ValidateUpdate:       validation.ValidateAccessRequestUpdate,
	ValidateStatusUpdate: validation.ValidateAccessRequestStatusUpdate,
	Warnings: func(a *openmcp.AccessRequest) []string {
		return validation.AccessRequestWarnings(a, time.Now())
	},
}
