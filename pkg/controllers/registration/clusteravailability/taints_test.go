// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteravailability

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

func TestTaints_MatchCondition(t *testing.T) {
	f := newFixture(t, &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "c1", Generation: 1},
		Spec: clusterv1.ManagedClusterSpec{Taints: []clusterv1.Taint{
			{Key: "gpu", Effect: clusterv1.TaintEffectNoSelect, TimeAdded: metav1.NewTime(start)},
			{Key: registration.TaintUnavailable, Effect: clusterv1.TaintEffectPreferNoSelect, TimeAdded: metav1.NewTime(start)},
		}},
	})
	theirs := []string{"gpu:NoSelect", "cluster.open-cluster-management.io/unavailable:PreferNoSelect"}
	f.look()
	f.expect(available, "", append(theirs, unreachable)...)
	f.set(available, metav1.ConditionFalse, "ManagedClusterKubeAPIServerUnavailable")
	f.look()
	f.expect(available, "False ManagedClusterKubeAPIServerUnavailable", append(theirs, unavailable)...)
	f.set(available, metav1.ConditionTrue, "ManagedClusterAvailable")
	f.look()
	f.expect(available, isTrue, theirs...)
	for _, taint := range f.cluster().Spec.Taints {
		if !taint.TimeAdded.Equal(&metav1.Time{Time: start}) {
			t.Errorf("the time of %s was changed to %s", taint.Key, taint.TimeAdded)
		}
	}
}

// The first writes to a new cluster do not conflict: the taint comes after the finalizer, or after the condition that the hub could not accept the
// cluster.
func TestTaints_AreAddedAfterFinalizer(t *testing.T) {
	for what, change := range map[string]func(*fixture){
		"its finalizer is there": func(f *fixture) {
			c := f.cluster()
			c.Finalizers = []string{registration.Finalizer}
			if err := f.c.Update(f.Context(), c); err != nil {
				f.Fatal(err)
			}
		},
		"it cannot be accepted": func(f *fixture) {
			f.set(registration.ConditionHubAccepted, metav1.ConditionFalse, registration.ReasonError)
		},
	} {
		t.Run(what, func(t *testing.T) {
			f := newFixture(t, &clusterv1.ManagedCluster{
				ObjectMeta: metav1.ObjectMeta{Name: "c1", Generation: 1}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
			})
			f.look()
			f.expect(available, "")
			change(f)
			f.look()
			f.expect(available, "", unreachable)
		})
	}
}
