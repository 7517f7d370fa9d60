// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterprofile

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
	"github.com/clusterhub/clusterhub/pkg/registry/generic/registrytest"
)

func TestStorage(t *testing.T) {
	registrytest.Suite[*openmcp.ClusterProfile]{
		Kind: Kind,
		Valid: func() *openmcp.ClusterProfile {
			return &openmcp.ClusterProfile{
				ObjectMeta: metav1.ObjectMeta{Name: "a"},
				Spec: openmcp.ClusterProfileSpec{
					ProviderRef: openmcp.LocalObjectReference{Name: "kind"}, ProviderConfigRef: openmcp.LocalObjectReference{Name: "config"},
					SupportedVersions: []openmcp.SupportedK8sVersion{},
				},
			}
		},
		Invalid:        []func(*openmcp.ClusterProfile){func(p *openmcp.ClusterProfile) { p.Spec.SupportedVersions = nil }},
		Change:         func(p *openmcp.ClusterProfile) { p.Spec.ProviderRef.Name = "other" },
		InvalidChanges: []func(*openmcp.ClusterProfile){func(p *openmcp.ClusterProfile) { p.Spec.ProviderRef.Name = "" }},
		Matching:       []fields.Set{{"spec.providerRef.name": "kind"}, {"spec.providerConfigRef.name": "config"}},
		Others:         []fields.Set{{"spec.providerRef.name": "gardener"}, {"spec.providerConfigRef.name": "kind"}},
		Columns:        "Name/0 Provider/0 Config/0",
		Cells:          "a|kind|config",
		ShortNames:     "cprof profile",
	}.Run(t)
}
