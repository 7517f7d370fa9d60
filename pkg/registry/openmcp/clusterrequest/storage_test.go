// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterrequest

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
	"github.com/clusterhub/clusterhub/pkg/registry/generic/registrytest"
)

func TestStorage(t *testing.T) {
	registrytest.Suite[*openmcp.ClusterRequest]{
		Kind: Kind,
		Valid: func() *openmcp.ClusterRequest {
			return &openmcp.ClusterRequest{
				ObjectMeta: metav1.ObjectMeta{Name: "a"},
				Spec:       openmcp.ClusterRequestSpec{Purpose: "mcp"},
			}
		},
		Invalid:        []func(*openmcp.ClusterRequest){func(r *openmcp.ClusterRequest) { r.Spec.Purpose = "" }},
		Change:         func(r *openmcp.ClusterRequest) { r.Labels = map[string]string{"env": "z"} },
		InvalidChanges: []func(*openmcp.ClusterRequest){func(r *openmcp.ClusterRequest) { r.Spec.Purpose = "other" }},
		OtherSpec:      func(r *openmcp.ClusterRequest) { r.Spec.Purpose = "other" },
		Matching:       []fields.Set{{"spec.purpose": "mcp"}, {"status.phase": ""}},
		Others:         []fields.Set{{"spec.purpose": "other"}, {"status.phase": "Granted"}},
		Status: func(r *openmcp.ClusterRequest) {
			r.Status.Cluster = &openmcp.ObjectReference{Namespace: "b", Name: "c"}
			r.Status.Status = openmcp.Status{ObservedGeneration: 1, Phase: "Granted", Conditions: []metav1.Condition{{
				Type: "Ready", Status: "True", Reason: "Because", LastTransitionTime: metav1.Unix(1, 0),
			}}}
		},
		BadStatus:  func(r *openmcp.ClusterRequest) { r.Status.Conditions[0].Reason = "" },
		Columns:    "Name/0 Purpose/0 Phase/0 Cluster/0 Cluster-NS/0",
		Cells:      "a|mcp|Granted|c|b",
		ShortNames: "cr creq",
	}.Run(t)
}
