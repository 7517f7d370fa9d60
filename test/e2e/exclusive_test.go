// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func deleteSet(t *testing.T, name string) {
	t.Helper()
	if err := admin(t).ClusterV1beta2().ManagedClusterSets().Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}

// TestExclusive_OfRacingCreatesOneWins sends the same claim to both replicas at once, many times.
func TestExclusive_OfRacingCreatesOneWins(t *testing.T) {
	for range 20 {
		value := unique("value")
		names := []string{unique("racer"), unique("racer"), unique("racer"), unique("racer")}
		errs := make([]error, len(names))
		var wg sync.WaitGroup
		for i, name := range names {
			client := ours(t, hub.HubAPIServerConfig(i%2)).ClusterV1beta1().ManagedClusterSets()
			wg.Go(func() {
				_, errs[i] = client.Create(t.Context(), exclusiveSet(name, infoPrefix+"race", value), metav1.CreateOptions{})
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
		deleteSet(t, winner)
	}
}

func TestExclusive_TheImpliedLabelOfTheLegacyTypeIsClaimedToo(t *testing.T) {
	legacy, other := unique("legacy"), unique("other")
	newSet(t, legacy)
	sets := admin(t).ClusterV1beta1().ManagedClusterSets()
	_, err := sets.Create(t.Context(), exclusiveSet(other, setLabel, legacy), metav1.CreateOptions{})
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), legacy) {
		t.Errorf("got %v, want a 409 that names %s", err, legacy)
	}
	// The set itself may say the same by the other type.
	s := must(sets.Get(t.Context(), legacy, metav1.GetOptions{}))(t)
	s.Spec = exclusiveSet(legacy, setLabel, legacy).Spec
	must(sets.Update(t.Context(), s, metav1.UpdateOptions{}))(t)
}

func TestExclusive_APairIsFreeOnceItsSetIsGoneOrSaysSomethingElse(t *testing.T) {
	sets := admin(t).ClusterV1beta1().ManagedClusterSets()
	first, second, third := unique("first"), unique("second"), unique("third")
	value := unique("value")
	s := must(sets.Create(t.Context(), exclusiveSet(first, infoPrefix+"free", value), metav1.CreateOptions{}))(t)
	t.Cleanup(func() { deleteSet(t, first); deleteSet(t, second); deleteSet(t, third) })
	_, err := sets.Create(t.Context(), exclusiveSet(second, infoPrefix+"free", value), metav1.CreateOptions{})
	if !apierrors.IsConflict(err) {
		t.Fatalf("got %v, want a 409", err)
	}
	s.Spec.ClusterSelector.ExclusiveLabel.Value = value + "-other"
	must(sets.Update(t.Context(), s, metav1.UpdateOptions{}))(t)
	must(sets.Create(t.Context(), exclusiveSet(second, infoPrefix+"free", value), metav1.CreateOptions{}))(t)
	s = must(sets.Get(t.Context(), first, metav1.GetOptions{}))(t)
	s.Spec.ClusterSelector.ExclusiveLabel.Value = value
	if _, err = sets.Update(t.Context(), s, metav1.UpdateOptions{}); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), second) {
		t.Errorf("got %v, want a 409 that names %s", err, second)
	}
	deleteSet(t, second)
	must(sets.Create(t.Context(), exclusiveSet(third, infoPrefix+"free", value), metav1.CreateOptions{}))(t)
}

func TestExclusive_ADryRunClaimsNothing(t *testing.T) {
	sets := admin(t).ClusterV1beta1().ManagedClusterSets()
	value, real := unique("value"), unique("real")
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	must(sets.Create(t.Context(), exclusiveSet(unique("dry"), infoPrefix+"dry", value), dry))(t)
	must(sets.Create(t.Context(), exclusiveSet(real, infoPrefix+"dry", value), metav1.CreateOptions{}))(t)
	t.Cleanup(func() { deleteSet(t, real) })
	if _, err := sets.Create(t.Context(), exclusiveSet(unique("dry"), infoPrefix+"dry", value), dry); !apierrors.IsConflict(err) {
		t.Errorf("a dry run of what is taken got %v, want a 409", err)
	}
}

// Consumers that care for exclusive sets only can watch just those, whichever type they have.
func TestExclusive_SetsCanBeSelectedByTypeAndKey(t *testing.T) {
	legacy, byLabel, byClusterSet := unique("legacy"), unique("region"), unique("set")
	newSet(t, legacy)
	sets := admin(t).ClusterV1beta1().ManagedClusterSets()
	must(sets.Create(t.Context(), exclusiveSet(byLabel, infoPrefix+"select", byLabel), metav1.CreateOptions{}))(t)
	must(sets.Create(t.Context(), exclusiveSet(byClusterSet, setLabel, byClusterSet), metav1.CreateOptions{}))(t)
	t.Cleanup(func() { deleteSet(t, byLabel); deleteSet(t, byClusterSet) })
	for selector, want := range map[string]map[string]bool{
		"spec.clusterSelector.exclusiveLabel.key=" + setLabel:                            {legacy: true, byLabel: false, byClusterSet: true},
		"spec.clusterSelector.exclusiveLabel.key=" + infoPrefix + "select":               {legacy: false, byLabel: true, byClusterSet: false},
		"spec.clusterSelector.selectorType=LabelSelector":                                {legacy: false, byLabel: false, byClusterSet: false, "global": true},
		"spec.clusterSelector.selectorType!=LabelSelector,metadata.name=" + byClusterSet: {legacy: false, byLabel: false, byClusterSet: true},
	} {
		list := must(sets.List(t.Context(), metav1.ListOptions{FieldSelector: selector}))(t)
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
