// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/expression"
	"github.com/clusterhub/clusterhub/pkg/placement/fleet"
)

// The expressions of a selector have one budget together.
func TestAllTrue_HasOneBudget(t *testing.T) {
	var all []*expression.Program
	for range 3 {
		e, err := compileExpression(`managedCluster.metadata.name == "c1"`, func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	c := fleet.NewCluster(&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}})
	if !allTrue(t.Context(), all, c, nil, selectorCost, NewMeter(1)) {
		t.Error("with the budget of a selector the cluster does not match")
	}
	if !allTrue(t.Context(), all[:1], c, nil, 10, NewMeter(1)) || allTrue(t.Context(), all, c, nil, 10, NewMeter(1)) {
		t.Error("the budget is not that of all expressions together")
	}
}
