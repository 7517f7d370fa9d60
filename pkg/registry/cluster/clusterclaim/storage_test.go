// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterclaim

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/registry/generic/registrytest"
)

func TestStorage(t *testing.T) {
	registrytest.Suite[*cluster.ClusterClaim]{
		Kind: Kind,
		Valid: func() *cluster.ClusterClaim {
			return &cluster.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Name: "id.k8s.io"}, Spec: cluster.ClusterClaimSpec{Value: "x"}}
		},
		Invalid: []func(*cluster.ClusterClaim){
			func(c *cluster.ClusterClaim) { c.Spec.Value = "" },
			func(c *cluster.ClusterClaim) { c.Spec.Value = strings.Repeat("x", 1025) },
		},
		Change:         func(c *cluster.ClusterClaim) { c.Spec.Value = "y" },
		InvalidChanges: []func(*cluster.ClusterClaim){func(c *cluster.ClusterClaim) { c.Spec.Value = "" }},
		Columns:        "Name/0 Age/0",
		Cells:          "id.k8s.io|<unknown>",
	}.Run(t)
}
