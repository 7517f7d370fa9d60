// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
)

func TestIsClusterProviderResponsibleForAccessRequest(t *testing.T) {
	request := func(change func(*v1alpha1.AccessRequest)) *v1alpha1.AccessRequest {
		r := &v1alpha1.AccessRequest{ObjectMeta: metav1.ObjectMeta{Generation: 2, Labels: map[string]string{
			"clusters.openmcp.cloud/provider": "kind", "clusters.openmcp.cloud/profile": "small",
		}}}
		r.Status.Phase, r.Status.ObservedGeneration = v1alpha1.REQUEST_GRANTED, 2
		if change != nil {
			change(r)
		}
		return r
	}
	for name, test := range map[string]struct {
		request  *v1alpha1.AccessRequest
		provider string
		want     bool
	}{
		"no request":                {provider: "kind"},
		"granted":                   {request: request(nil), provider: "kind", want: true},
		"of any provider":           {request: request(nil), want: true},
		"of another provider":       {request: request(nil), provider: "gardener"},
		"without a provider":        {request: request(func(r *v1alpha1.AccessRequest) { delete(r.Labels, v1alpha1.ProviderLabel) })},
		"without a profile":         {request: request(func(r *v1alpha1.AccessRequest) { delete(r.Labels, v1alpha1.ProfileLabel) }), provider: "kind"},
		"without a phase":           {request: request(func(r *v1alpha1.AccessRequest) { r.Status.Phase = "" }), provider: "kind"},
		"denied":                    {request: request(func(r *v1alpha1.AccessRequest) { r.Status.Phase = "Denied" }), provider: "kind"},
		"granted, and then changed": {request: request(func(r *v1alpha1.AccessRequest) { r.Generation = 3 }), provider: "kind"},
		"pending, and then changed": {request: request(func(r *v1alpha1.AccessRequest) { r.Status.Phase, r.Generation = "Pending", 3 }), provider: "kind", want: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := v1alpha1.IsClusterProviderResponsibleForAccessRequest(test.request, test.provider); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestIsPrepared(t *testing.T) {
	for name, test := range map[string]struct {
		conditions []metav1.Condition
		want       bool
	}{
		"by openMCP's operator": {want: true},
		"as it is":              {conditions: []metav1.Condition{{Type: "Prepared", Status: "True", ObservedGeneration: 2}}, want: true},
		"as it was":             {conditions: []metav1.Condition{{Type: "Prepared", Status: "True", ObservedGeneration: 1}}},
		"not as it is":          {conditions: []metav1.Condition{{Type: "Prepared", Status: "False", ObservedGeneration: 2}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &v1alpha1.AccessRequest{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
			r.Status.Conditions = test.conditions
			if got := v1alpha1.IsPrepared(r); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
