// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package sets

import (
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster/v1beta1"
	"github.com/clusterhub/clusterhub/test/e2e/harness"
)

// TestExclusive_RacingCreatesOneSucceeds sends the same claim to both replicas concurrently, many times.
func TestExclusive_RacingCreatesOneSucceeds(t *testing.T) {
	for range 20 {
		value := harness.Unique("value")
		names := []string{harness.Unique("racer"), harness.Unique("racer"), harness.Unique("racer"), harness.Unique("racer")}
		errs := make([]error, len(names))
		var wg sync.WaitGroup
		for i, name := range names {
			client := harness.Ours(t, harness.Hub(t).HubAPIServerConfig(i%2)).ClusterV1beta1().ManagedClusterSets()
			wg.Go(func() {
				_, errs[i] = client.Create(t.Context(), harness.ExclusiveSet(name, harness.InfoPrefix+"race", value), metav1.CreateOptions{})
			})
		}
		wg.Wait()
		winner := ""
		for i, err := range errs {
			if err == nil {
				if winner != "" {
					t.Fatalf("%s and %s both claim %s", winner, names[i], value)
				}
				winner = names[i]
			}
		}
		if winner == "" {
			t.Fatalf("nobody has won: %v", errs)
		}
		for _, err := range errs {
			if err != nil && (!apierrors.IsConflict(err) || !strings.Contains(err.Error(), winner)) {
				t.Errorf("a loser got %v, want a 409 that names %s", err, winner)
			}
		}
		harness.DeleteSet(t, winner)
	}
}

func TestExclusive_LegacyTypeClaimsImpliedLabel(t *testing.T) {
	legacy, other := harness.Unique("legacy"), harness.Unique("other")
	harness.NewSet(t, legacy)
	sets := harness.Admin(t).ClusterV1beta1().ManagedClusterSets()
	_, err := sets.Create(t.Context(), harness.ExclusiveSet(other, harness.SetLabel, legacy), metav1.CreateOptions{})
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), legacy) {
		t.Errorf("got %v, want a 409 that names %s", err, legacy)
	}
	// The set itself may make the same claim with the other type.
	if err := harness.ChangeSet(t, legacy, func(s *v1beta1.ManagedClusterSetSpec) {
		*s = harness.ExclusiveSet(legacy, harness.SetLabel, legacy).Spec
	}); err != nil {
		t.Fatal(err)
	}
}

func TestExclusive_LabelIsReleasedOnDeletionOrChange(t *testing.T) {
	sets := harness.Admin(t).ClusterV1beta1().ManagedClusterSets()
	first, second, third := harness.Unique("first"), harness.Unique("second"), harness.Unique("third")
	value := harness.Unique("value")
	harness.Must(sets.Create(t.Context(), harness.ExclusiveSet(first, harness.InfoPrefix+"free", value), metav1.CreateOptions{}))(t)
	t.Cleanup(func() { harness.DeleteSet(t, first); harness.DeleteSet(t, second); harness.DeleteSet(t, third) })
	_, err := sets.Create(t.Context(), harness.ExclusiveSet(second, harness.InfoPrefix+"free", value), metav1.CreateOptions{})
	if !apierrors.IsConflict(err) {
		t.Fatalf("got %v, want a 409", err)
	}
	claim := func(value string) error {
		return harness.ChangeSet(t, first, func(s *v1beta1.ManagedClusterSetSpec) { s.ClusterSelector.ExclusiveLabel.Value = value })
	}
	if err := claim(value + "-other"); err != nil {
		t.Fatal(err)
	}
	harness.Must(sets.Create(t.Context(), harness.ExclusiveSet(second, harness.InfoPrefix+"free", value), metav1.CreateOptions{}))(t)
	if err := claim(value); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), second) {
		t.Errorf("got %v, want a 409 that names %s", err, second)
	}
	harness.DeleteSet(t, second)
	harness.Must(sets.Create(t.Context(), harness.ExclusiveSet(third, harness.InfoPrefix+"free", value), metav1.CreateOptions{}))(t)
}

func TestExclusive_DryRunClaimsNothing(t *testing.T) {
	sets := harness.Admin(t).ClusterV1beta1().ManagedClusterSets()
	value, real := harness.Unique("value"), harness.Unique("real")
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	harness.Must(sets.Create(t.Context(), harness.ExclusiveSet(harness.Unique("dry"), harness.InfoPrefix+"dry", value), dry))(t)
	harness.Must(sets.Create(t.Context(), harness.ExclusiveSet(real, harness.InfoPrefix+"dry", value), metav1.CreateOptions{}))(t)
	t.Cleanup(func() { harness.DeleteSet(t, real) })
	if _, err := sets.Create(t.Context(), harness.ExclusiveSet(harness.Unique("dry"), harness.InfoPrefix+"dry", value), dry); !apierrors.IsConflict(err) {
		t.Errorf("a dry run of what is taken got %v, want a 409", err)
	}
}

// TestExclusive_SelectableByTypeAndKey verifies that clients that need only exclusive sets can watch just those, whichever type they have.
func TestExclusive_SelectableByTypeAndKey(t *testing.T) {
	legacy, byLabel, byClusterSet := harness.Unique("legacy"), harness.Unique("region"), harness.Unique("set")
	harness.NewSet(t, legacy)
	sets := harness.Admin(t).ClusterV1beta1().ManagedClusterSets()
	harness.Must(sets.Create(t.Context(), harness.ExclusiveSet(byLabel, harness.InfoPrefix+"select", byLabel), metav1.CreateOptions{}))(t)
	harness.Must(sets.Create(t.Context(), harness.ExclusiveSet(byClusterSet, harness.SetLabel, byClusterSet), metav1.CreateOptions{}))(t)
	t.Cleanup(func() { harness.DeleteSet(t, byLabel); harness.DeleteSet(t, byClusterSet) })
	for selector, want := range map[string]map[string]bool{
		"spec.clusterSelector.exclusiveLabel.key=" + harness.SetLabel:                    {legacy: true, byLabel: false, byClusterSet: true},
		"spec.clusterSelector.exclusiveLabel.key=" + harness.InfoPrefix + "select":       {legacy: false, byLabel: true, byClusterSet: false},
		"spec.clusterSelector.selectorType=LabelSelector":                                {legacy: false, byLabel: false, byClusterSet: false, "global": true},
		"spec.clusterSelector.selectorType!=LabelSelector,metadata.name=" + byClusterSet: {legacy: false, byLabel: false, byClusterSet: true},
	} {
		list := harness.Must(sets.List(t.Context(), metav1.ListOptions{FieldSelector: selector}))(t)
		got := map[string]bool{}
		for _, s := range list.Items {
			got[s.Name] = true
		}
		for name, in := range want {
			if got[name] != in {
				t.Errorf("%s: %s selected is %t, want %t", selector, name, got[name], in)
			}
		}
	}
}
