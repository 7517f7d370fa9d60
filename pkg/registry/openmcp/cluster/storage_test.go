// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp"
	"github.com/clusterhub/clusterhub/pkg/registry/generic/registrytest"
)

func TestStorage(t *testing.T) {
	registrytest.Suite[*openmcp.Cluster]{
		Kind: Kind,
		Valid: func() *openmcp.Cluster {
			return &openmcp.Cluster{
				ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{
					"clusters.openmcp.cloud/k8sversion": "1.33.3", "clusters.openmcp.cloud/provider": "kind",
				}, Annotations: map[string]string{"clusters.openmcp.cloud/providerinfo": "info"}},
				Spec: openmcp.ClusterSpec{Profile: "kind", Purposes: []string{"mcp", "\"x"}, Tenancy: openmcp.TENANCY_SHARED},
			}
		},
		Invalid:        []func(*openmcp.Cluster){func(c *openmcp.Cluster) { c.Spec.Tenancy = "" }},
		Change:         func(c *openmcp.Cluster) { c.Spec.Tenancy = openmcp.TENANCY_EXCLUSIVE },
		InvalidChanges: []func(*openmcp.Cluster){func(c *openmcp.Cluster) { c.Spec.Profile = "other" }},
		Matching:       []fields.Set{{"spec.profile": "kind"}},
		Others:         []fields.Set{{"spec.profile": "other"}},
		Status: func(c *openmcp.Cluster) {
			c.Status.Status = openmcp.Status{ObservedGeneration: 1, Phase: "Ready", Conditions: []metav1.Condition{{
				Type: "Ready", Status: "True", Reason: "Because", LastTransitionTime: metav1.Unix(1, 0),
			}}}
		},
		BadStatus: func(c *openmcp.Cluster) { c.Status.Conditions[0].Reason = "" },
		Columns:   "Name/0 Purposes/0 Phase/0 Version/0 Provider/0 Profile/10 Info/10 Age/0",
		Cells:     `a|["mcp","\"x"]|Ready|1.33.3|kind|kind|info|<unknown>`,
	}.Run(t)
}
