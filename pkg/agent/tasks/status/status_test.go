// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"encoding/pem"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterhub/clusterhub/pkg/agent/agenttest"
	"github.com/clusterhub/clusterhub/pkg/agent/hub"
	"github.com/clusterhub/clusterhub/pkg/agent/task"
	"github.com/clusterhub/clusterhub/pkg/agent/tasks/status"
	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

func resources(cpu string) clusterv1.ResourceList {
	return clusterv1.ResourceList{"cpu": resource.MustParse(cpu)}
}

// reporting runs the task, and returns its view and its facts.
func reporting(w *agenttest.World, s task.Session, cluster *hub.ClusterConfig) (*hub.View, *agenttest.Facts, func()) {
	view := hub.NewView(60)
	reports, facts := w.Status(view, cluster)
	return view, facts, w.Run(s, reports)
}

func TestStatus_UnchangedIsNotWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := agenttest.NewWorld(t)
		view, facts, stop := reporting(w, w.Session(), &hub.ClusterConfig{})
		facts.Set(status.Observation{Version: "v1", Capacity: resources("4"), Allocatable: resources("3"),
			Claims: []clusterv1.ManagedClusterClaim{{Name: "id.k8s.io", Value: "x"}}})
		agenttest.Pass(2 * time.Minute)
		written := w.Asked("patch managedclusters/status")
		facts.Set(status.Observation{Version: "v1", Capacity: resources("4000m"), Allocatable: resources("3"),
			Claims: []clusterv1.ManagedClusterClaim{{Name: "id.k8s.io", Value: "x"}}})
		agenttest.Pass(3 * time.Hour)
		if n := w.Asked("patch managedclusters/status") - written; n != 0 {
			t.Errorf("the status was written %d times", n)
		}
		if n := w.Asked("update managedclusters"); n != 0 {
			t.Errorf("the cluster was written %d times", n)
		}
		facts.Set(status.Observation{Version: "v2"})
		view.Changed()
		agenttest.Pass(10 * time.Second)
		c := w.Cluster()
		if c.Status.Version.Kubernetes != "v2" || len(c.Status.Capacity) != 1 || len(c.Status.ClusterClaims) != 2 {
			t.Errorf("what is not known was not left as it is: %+v", c.Status)
		}
		if n := w.Asked("patch managedclusters/status") - written; n != 1 {
			t.Errorf("one change was written %d times", n)
		}
		stop()
	})
}

// The agent's own claims are reported beside those of the cluster, which cannot replace them.
func TestStatus_ReportsVersionAndCA(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := agenttest.NewWorld(t)
		s := w.Session()
		s.Hub.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("ca")})
		_, facts, stop := reporting(w, s, &hub.ClusterConfig{})
		facts.Set(status.Observation{Version: "v1", Claims: []clusterv1.ManagedClusterClaim{{Name: "id.k8s.io", Value: "x"}, {Name: "z", Value: "y"}}})
		agenttest.Pass(2 * time.Minute)
		want := []clusterv1.ManagedClusterClaim{{Name: registration.ClaimHubCA, Value: registration.CertificateHash([]byte("ca"))}, {Name: "id.k8s.io", Value: "x"},
			{Name: registration.ClaimAgentVersion, Value: agenttest.Version}, {Name: "z", Value: "y"}}
		if got := w.Cluster().Status.ClusterClaims; !slices.Equal(got, want) {
			t.Errorf("the claims are %v, not %v", got, want)
		}
		stop()
	})
}

func TestStatus_UnhealthyAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := agenttest.NewWorld(t)
		_, facts, stop := reporting(w, w.Session(), &hub.ClusterConfig{})
		agenttest.Pass(time.Minute)
		if got := w.Condition(registration.ConditionAvailable); got.Status != metav1.ConditionTrue {
			t.Fatalf("at first it is %+v", got)
		}
		facts.Set(status.Observation{Unhealthy: errors.New("/livez returned 500: etcd failed")})
		agenttest.Pass(2 * time.Minute)
		c := w.Cluster()
		if got := w.Condition(registration.ConditionAvailable); got.Status != metav1.ConditionFalse ||
			got.Reason != registration.ReasonKubeAPIServerUnhealthy || !strings.Contains(got.Message, "etcd failed") {
			t.Errorf("it is %+v", got)
		}
		if c.Status.Version.Kubernetes != "v1.37.1" {
			t.Error("the version was forgotten")
		}
		stop()
	})
}

func TestStatus_RestoresAvailableCondition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := agenttest.NewWorld(t)
		_, _, stop := reporting(w, w.Session(), &hub.ClusterConfig{})
		agenttest.Pass(time.Minute)
		c := w.Cluster()
		meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: registration.ConditionAvailable,
			Status: metav1.ConditionUnknown, Reason: registration.ReasonLeaseUpdateStopped})
		w.Update(c)
		agenttest.Pass(2 * time.Minute)
		if got := w.Condition(registration.ConditionAvailable); got.Status != metav1.ConditionTrue {
			t.Errorf("it is %+v", got)
		}
		stop()
	})
}

func TestStatus_RetriesConflictAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := agenttest.NewWorld(t)
		view, facts, stop := reporting(w, w.Session(), &hub.ClusterConfig{})
		agenttest.Pass(time.Minute)
		conflicts := 2
		w.Set(func() {
			w.Refuse = func(_, verb, resource string) error {
				if verb == "patch" && conflicts > 0 {
					conflicts--
					return apierrors.NewConflict(schema.GroupResource{Resource: resource}, agenttest.ClusterName, errors.New("changed"))
				}
				return nil
			}
		})
		facts.Set(status.Observation{Version: "v9"})
		view.Changed()
		agenttest.Pass(6 * time.Second)
		if got := w.Cluster().Status.Version.Kubernetes; got != "v9" {
			t.Errorf("the version is %s", got)
		}
		stop()
	})
}

func TestStatus_CoalescesChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := agenttest.NewWorld(t)
		view, _, stop := reporting(w, w.Session(), &hub.ClusterConfig{})
		agenttest.Pass(time.Minute)
		asked := w.Asked("get managedclusters")
		for range 600 {
			view.Changed()
			agenttest.Pass(100 * time.Millisecond)
		}
		if n := w.Asked("get managedclusters") - asked; n > 13 {
			t.Errorf("600 changes in a minute made %d requests", n)
		}
		stop()
	})
}

func TestCluster_ReportsNewAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := agenttest.NewWorld(t)
		s := w.Session()
		c := w.Cluster()
		c.Spec.ManagedClusterClientConfigs = []clusterv1.ClientConfig{{URL: "https://others"}}
		w.Update(c)
		_, _, stop := reporting(w, s, &hub.ClusterConfig{ServerURL: "https://own"})
		agenttest.Pass(10 * time.Minute)
		got := w.Cluster().Spec.ManagedClusterClientConfigs
		if len(got) != 2 || got[0].URL != "https://others" || got[1].URL != "https://own" {
			t.Errorf("the addresses are %v", got)
		}
		if n := w.Asked("update managedclusters"); n != 1 {
			t.Errorf("they were written %d times", n)
		}
		stop()
	})
}

func TestCluster_ForbiddenUpdateStillReportsStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := agenttest.NewWorld(t)
		w.Set(func() {
			w.Refuse = func(_, verb, resource string) error {
				if verb == "update" && resource == "managedclusters" {
					return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, agenttest.ClusterName, errors.New("no"))
				}
				return nil
			}
		})
		_, facts, stop := reporting(w, w.Session(), &hub.ClusterConfig{ServerURL: "https://own"})
		facts.Set(status.Observation{Version: "v9"})
		agenttest.Pass(time.Minute)
		if got := w.Cluster().Status.Version.Kubernetes; got != "v9" {
			t.Errorf("the version is %s", got)
		}
		stop()
	})
}
