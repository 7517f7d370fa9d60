// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
	workv1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1"
	workv1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/work/v1alpha1"
)

var now = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// TestLease verifies how old a lease may be.
func TestLease(t *testing.T) {
	for name, test := range map[string]struct {
		every int32
		age   time.Duration
		want  HealthState
	}{
		"young":               {60, 10 * time.Second, Healthy},
		"as old as it may be": {60, 5 * time.Minute, Healthy},
		"too old":             {60, 5*time.Minute + time.Second, Unknown},
		"of a slow agent":     {600, 40 * time.Minute, Healthy},
		"by default":          {0, 6 * time.Minute, Unknown},
	} {
		lease := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: now.Add(-test.age)}}}
		c := &clusterv1.ManagedCluster{Spec: clusterv1.ManagedClusterSpec{LeaseDurationSeconds: test.every}}
		if got := Lease(c, lease, now).State; got != test.want {
			t.Errorf("%s: it is %s, want %s", name, got, test.want)
		}
	}
	if got := Lease(&clusterv1.ManagedCluster{}, &coordinationv1.Lease{}, now).State; got != Unknown {
		t.Errorf("a lease that was never renewed is %s", got)
	}
}

func TestCurrent(t *testing.T) {
	conditions := []metav1.Condition{{Type: "A", Status: metav1.ConditionTrue, ObservedGeneration: 2}}
	if Current(conditions, "A", 2) == nil || Current(conditions, "A", 3) != nil || Current(conditions, "B", 2) != nil {
		t.Error("a condition of another generation or type is current, or none is")
	}
	if Status(conditions, "A") != metav1.ConditionTrue || Status(conditions, "B") != metav1.ConditionUnknown {
		t.Error("the status of a condition differs from it, or that of a missing one is not Unknown")
	}
}

func TestDeployment(t *testing.T) {
	for name, test := range map[string]struct {
		ready, updated int32
		observed       int64
		want           Health
	}{
		"all pods work":            {3, 3, 2, Health{State: Healthy, Message: "3 ready"}},
		"a pod is missing":         {2, 3, 2, Health{State: Unhealthy, Message: "2 of 3 ready"}},
		"a pod is of another spec": {3, 1, 2, Health{State: Progressing, Message: "1 of 3 updated"}},
		"the spec is new":          {3, 3, 1, Health{State: Progressing, Message: "3 of 3 updated"}},
	} {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Spec: appsv1.DeploymentSpec{Replicas: new(int32(3))}}
		d.Status = appsv1.DeploymentStatus{ReadyReplicas: test.ready, UpdatedReplicas: test.updated, ObservedGeneration: test.observed}
		if got := Deployment(d); got != test.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestEdgePlacement(t *testing.T) {
	for state, want := range map[edgev1alpha1.PlacementState]HealthState{
		"": Unknown, "SomethingNew": Unknown, edgev1alpha1.PlacementRunning: Healthy, edgev1alpha1.PlacementFailed: Unhealthy,
		edgev1alpha1.PlacementPending: Progressing, edgev1alpha1.PlacementDelivering: Progressing, edgev1alpha1.PlacementRemoving: Progressing,
	} {
		if got := EdgePlacement(&edgev1alpha1.EdgePlacement{Status: edgev1alpha1.EdgePlacementStatus{State: state}}).State; got != want {
			t.Errorf("%s is %s", state, got)
		}
	}
}

// TestIsDone verifies that a work is done only by the conditions of its current generation, and what is missing otherwise.
func TestIsDone(t *testing.T) {
	of := func(generation int64, applied, available metav1.ConditionStatus) *workv1.ManifestWork {
		w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
		w.Status.Conditions = []metav1.Condition{{Type: workv1.WorkApplied, Status: applied, ObservedGeneration: generation, Message: "why"},
			{Type: workv1.WorkAvailable, Status: available, ObservedGeneration: generation}}
		return w
	}
	faulty := of(2, "False", "True")
	faulty.Status.ResourceStatus.Manifests = []workv1.ManifestCondition{{ResourceMeta: workv1.ManifestResourceMeta{Kind: "ConfigMap", Namespace: "a", Name: "b"},
		Conditions: []metav1.Condition{{Type: workv1.ManifestApplied, Status: metav1.ConditionFalse, Message: "refused"}}}}
	deleted := of(2, "True", "True")
	deleted.DeletionTimestamp = new(metav1.NewTime(now))
	for missing, w := range map[string]*workv1.ManifestWork{
		"": of(2, "True", "True"), "its agent has not reported it yet": of(1, "True", "True"), "not applied: why": of(2, "False", "True"),
		"not available": of(2, "True", "False"), "ConfigMap a/b is not applied: refused": faulty, "is being deleted": deleted,
	} {
		if done, got := IsDone(w); done != (missing == "") || got != missing {
			t.Errorf("%q: done is %t, and missing is %q", missing, done, got)
		}
	}
}

func TestIsRolledOut(t *testing.T) {
	r := &workv1alpha1.ManifestWorkReplicaSet{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
	if done, why := IsRolledOut(r); done || why != "the hub has not observed the current spec yet" {
		t.Error(done, why)
	}
	r.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.ManifestWorkReplicaSetConditionPlacementRolledOut, Status: "False", ObservedGeneration: 2, Message: "1 of 2"},
		{Type: "Authorized", Status: "False", ObservedGeneration: 2, Message: "ann may not"}}
	if done, why := IsRolledOut(r); done || why != "1 of 2; ann may not" {
		t.Error(done, why)
	}
	r.Status.Conditions[0].Status = metav1.ConditionTrue
	if done, _ := IsRolledOut(r); !done {
		t.Error("it is not rolled out")
	}
}
