// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package managedcluster is the registry of managedclusters and their subresources.
package managedcluster

import (
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	v1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/apis/cluster/validation"
	hubgeneric "github.com/clusterhub/clusterhub/pkg/registry/generic"
)

// acceptsField is the field selector for whether the hub accepts a cluster.
const acceptsField = "spec.hubAcceptsClient"

// Kind is the kind ManagedCluster. Admission decides who may change which label, and who may accept a cluster, for every write (pkg/admission).
var Kind = &hubgeneric.Kind[*cluster.ManagedCluster]{
	Resource:   cluster.Resource("managedclusters"),
	Singular:   "managedcluster",
	ShortNames: []string{"mcl", "mcls"},
	Versions:   []schema.GroupVersion{v1.SchemeGroupVersion},

	New:     func() *cluster.ManagedCluster { return &cluster.ManagedCluster{} },
	NewList: func() runtime.Object { return &cluster.ManagedClusterList{} },
	Table:   tableConvertor,

	Spec:   func(c *cluster.ManagedCluster) any { return &c.Spec },
	Status: func(c *cluster.ManagedCluster) any { return &c.Status },
	Fields: func(c *cluster.ManagedCluster) fields.Set {
		return fields.Set{acceptsField: strconv.FormatBool(c.Spec.HubAcceptsClient)}
	},
	// Upstream's clients list an exclusive set by the label, and admission counts the clusters that wait for acceptance by the field.
	IndexedLabels: []string{cluster.ClusterSetLabel},
	IndexedFields: []string{acceptsField},

	PrepareForCreate: func(c *cluster.ManagedCluster) {
		delete(c.Annotations, cluster.AcceptedAtAnnotation)
		validation.PrepareNewTaints(c.Spec.Taints, metav1.Now())
	},
	PrepareForUpdate: func(c, old *cluster.ManagedCluster) {
		validation.PrepareTaints(c.Spec.Taints, old.Spec.Taints, metav1.Now())
		noteAcceptance(c, old)
	},
	Validate:             validation.ValidateManagedCluster,
	ValidateUpdate:       validation.ValidateManagedClusterUpdate,
	ValidateStatusUpdate: validation.ValidateManagedClusterStatusUpdate,
	Warnings:             validation.TaintWarnings,

	Parts: map[string]hubgeneric.Part[*cluster.ManagedCluster]{
		"label": {
			Take: func(into, sent, _ *cluster.ManagedCluster) { into.Labels = sent.Labels },
			Others: []fieldpath.Path{fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("status"),
				fieldpath.MakePathOrDie("metadata", "annotations"), fieldpath.MakePathOrDie("metadata", "finalizers"),
				fieldpath.MakePathOrDie("metadata", "ownerReferences")},
		},
		"accept": {
			Take: func(into, sent, old *cluster.ManagedCluster) {
				into.Spec.HubAcceptsClient = sent.Spec.HubAcceptsClient
				noteAcceptance(into, old)
			},
			Others: []fieldpath.Path{fieldpath.MakePathOrDie("metadata"), fieldpath.MakePathOrDie("status"),
				fieldpath.MakePathOrDie("spec", "managedClusterClientConfigs"),
				fieldpath.MakePathOrDie("spec", "leaseDurationSeconds"), fieldpath.MakePathOrDie("spec", "taints")},
		},
	},
}

// noteAcceptance records the time when a cluster was accepted, in an annotation that only the server writes.
func noteAcceptance(c, old *cluster.ManagedCluster) {
	at, noted := old.Annotations[cluster.AcceptedAtAnnotation]
	if c.Spec.HubAcceptsClient && !old.Spec.HubAcceptsClient {
		at, noted = time.Now().UTC().Format(time.RFC3339Nano), true
	}
	if !noted || !c.Spec.HubAcceptsClient {
		delete(c.Annotations, cluster.AcceptedAtAnnotation)
		return
	}
	if c.Annotations == nil {
		c.Annotations = map[string]string{}
	}
	c.Annotations[cluster.AcceptedAtAnnotation] = at
}
