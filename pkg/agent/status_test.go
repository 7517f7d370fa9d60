// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

func resources(cpu string) clusterv1.ResourceList {
	return clusterv1.ResourceList{"cpu": resource.MustParse(cpu)}
}

func TestStatus_NothingIsWrittenWhileNothingChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.newAgent()
		facts := a.facts.(*fakeFacts)
		facts.set(observation{version: "v1", capacity: resources("4"), allocatable: resources("3"),
			claims: []clusterv1.ManagedClusterClaim{{Name: "id.k8s.io", Value: "x"}}})
		stop := start(t, a)
		pass(5 * time.Second)
		w.accept()
		pass(2 * time.Minute)
		written := w.asked("patch managedclusters/status")
		facts.set(observation{version: "v1", capacity: resources("4000m"), allocatable: resources("3"),
			claims: []clusterv1.ManagedClusterClaim{{Name: "id.k8s.io", Value: "x"}}})
		pass(3 * time.Hour)
		if n := w.asked("patch managedclusters/status") - written; n != 0 {
			t.Errorf("the status was written %d times", n)
		}
		if n := w.asked("update managedclusters"); n != 0 {
			t.Errorf("the cluster was written %d times", n)
		}
		facts.set(observation{version: "v2"})
		a.kick()
		pass(10 * time.Second)
		c := w.cluster()
		if c.Status.Version.Kubernetes != "v2" || len(c.Status.Capacity) != 1 || len(c.Status.ClusterClaims) != 1 {
			t.Errorf("what is not known was not left as it is: %+v", c.Status)
		}
		if n := w.asked("patch managedclusters/status") - written; n != 1 {
			t.Errorf("one change was written %d times", n)
		}
		stop()
	})
}

func TestStatus_ThePatchIsForOneVersionOfOneClusterAndHasOnlyWhatChanges(t *testing.T) {
	c := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1", UID: "u", ResourceVersion: "7"}}
	c.Status.Version.Kubernetes = "v1"
	c.Status.Capacity = resources("4")
	next := *c.Status.DeepCopy()
	if patch, err := statusPatch(c, next); patch != nil || err != nil {
		t.Errorf("without a change: %s, %v", patch, err)
	}
	next.Version.Kubernetes = "v2"
	patch, err := statusPatch(c, next)
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	if err := errors.Join(json.Unmarshal(patch, &got), json.Unmarshal([]byte(
		`{"metadata":{"uid":"u","resourceVersion":"7"},"status":{"version":{"kubernetes":"v2"}}}`), &want)); err != nil {
		t.Fatal(err)
	}
	if g, w := mustJSON(t, got), mustJSON(t, want); g != w {
		t.Errorf("got %s, want %s", g, w)
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestStatus_AnUnhealthyAPIServerIsUnavailableAndTheLeaseGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, stop := w.joined()
		if got := condition(w.cluster(), registration.ConditionAvailable); got.Status != metav1.ConditionTrue {
			t.Fatalf("at first it is %+v", got)
		}
		a.facts.(*fakeFacts).set(observation{unhealthy: errors.New("/livez answered 500: etcd failed")})
		pass(2 * time.Minute)
		c := w.cluster()
		if got := condition(c, registration.ConditionAvailable); got.Status != metav1.ConditionFalse ||
			got.Reason != registration.ReasonKubeAPIServerUnhealthy || !strings.Contains(got.Message, "etcd failed") {
			t.Errorf("it is %+v", got)
		}
		if c.Status.Version.Kubernetes != "v1.37.1" {
			t.Error("the version was forgotten")
		}
		if w.lease().Spec.RenewTime.Time.Before(time.Now().Add(-time.Minute)) {
			t.Error("the lease is not renewed any more")
		}
		stop()
	})
}

func TestStatus_WhatTheHubHasGivenUpIsPutRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, stop := w.joined()
		c := w.cluster()
		meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: registration.ConditionAvailable,
			Status: metav1.ConditionUnknown, Reason: registration.ReasonLeaseUpdateStopped})
		if err := w.hubClusters.Tracker().Update(clusterv1.SchemeGroupVersion.WithResource("managedclusters"), c, ""); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Minute)
		if got := condition(w.cluster(), registration.ConditionAvailable); got.Status != metav1.ConditionTrue {
			t.Errorf("it is %+v", got)
		}
		stop()
	})
}

func TestStatus_AConflictIsTriedAgainAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, stop := w.joined()
		conflicts := 2
		w.set(func() {
			w.refuse = func(_, verb, resource string) error {
				if verb == "patch" && conflicts > 0 {
					conflicts--
					return apierrors.NewConflict(schema.GroupResource{Resource: resource}, clusterName, errors.New("changed"))
				}
				return nil
			}
		})
		a.facts.(*fakeFacts).set(observation{version: "v9"})
		a.kick()
		pass(6 * time.Second)
		if got := w.cluster().Status.Version.Kubernetes; got != "v9" {
			t.Errorf("the version is %s", got)
		}
		stop()
	})
}

func TestStatus_ChangesAreGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, stop := w.joined()
		asked := w.asked("get managedclusters")
		for range 600 {
			a.kick()
			pass(100 * time.Millisecond)
		}
		if n := w.asked("get managedclusters") - asked; n > 13 {
			t.Errorf("600 changes in a minute made %d requests", n)
		}
		stop()
	})
}

func TestCluster_ANewAddressOfTheClusterIsToldToTheHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, stop := w.joined()
		stop()
		c := w.cluster()
		c.Spec.ManagedClusterClientConfigs = []clusterv1.ClientConfig{{URL: "https://others"}}
		if err := w.hubClusters.Tracker().Update(clusterv1.SchemeGroupVersion.WithResource("managedclusters"), c, ""); err != nil {
			t.Fatal(err)
		}
		a := w.newAgent()
		a.settings.serverURL = "https://own"
		stop = start(t, a)
		pass(10 * time.Minute)
		got := w.cluster().Spec.ManagedClusterClientConfigs
		if len(got) != 2 || got[0].URL != "https://others" || got[1].URL != "https://own" {
			t.Errorf("the addresses are %v", got)
		}
		if n := w.asked("update managedclusters"); n != 1 {
			t.Errorf("they were written %d times", n)
		}
		stop()
	})
}

func TestCluster_AClusterThatMayNotBeChangedHasAStatusAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, stop := w.joined()
		stop()
		w.set(func() {
			w.refuse = func(_, verb, resource string) error {
				if verb == "update" && resource == "managedclusters" {
					return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, clusterName, errors.New("no"))
				}
				return nil
			}
		})
		a := w.newAgent()
		a.settings.serverURL = "https://own"
		a.facts.(*fakeFacts).set(observation{version: "v9"})
		stop = start(t, a)
		pass(time.Minute)
		if got := w.cluster().Status.Version.Kubernetes; got != "v9" {
			t.Errorf("the version is %s", got)
		}
		stop()
	})
}
