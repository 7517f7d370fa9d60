// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/agent/agenttest"
	"github.com/clusterhub/clusterhub/pkg/agent/hub"
	"github.com/clusterhub/clusterhub/pkg/agent/identity"
	"github.com/clusterhub/clusterhub/pkg/agent/identity/awsirsa"
	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const (
	hubARN     = "arn:aws:eks:us-west-2:123456789012:cluster/hub-cluster1"
	managedARN = "arn:aws:eks:eu-west-1:123456789012:cluster/managed-cluster1"
)

// newAWSAgent returns an agent that authenticates to the hub with a token, which Connect does not check.
func (w *world) newAWSAgent(refused func() error) *agent {
	w.T.Helper()
	w.Set(func() {
		w.Refuse = func(user, _, _ string) error {
			if user == "" {
				return refused()
			}
			return nil
		}
	})
	j := w.joiner()
	j.Connect = func(config *rest.Config) (*hub.Hub, error) {
		if config.BearerToken != "" {
			return w.Connect(config)
		}
		return w.ConnectAs("")
	}
	driver := awsirsa.New()
	driver.HubARN, driver.ManagedARN = hubARN, managedARN
	return w.agentOf(j, driver)
}

func TestAWS_JoinsOnceRoleIsAuthorized(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var refusal error = &url.Error{Op: "Get", URL: "x", Err: &identity.RefusedError{Message: "AccessDenied"}}
		a := w.newAWSAgent(func() error { return refusal })
		stop := start(t, a)
		agenttest.Pass(time.Minute)
		annotations := w.Cluster().Annotations
		if annotations[registration.AnnotationManagedClusterARN] != managedARN || annotations[registration.AnnotationManagedClusterARNOfSeed] != managedARN ||
			annotations[registration.AnnotationAgentKey] != "" {
			t.Errorf("the cluster has the annotations %v", annotations)
		}
		if s := w.State(); len(s.Kubeconfig) > 0 || s.ClusterName != agenttest.ClusterName {
			t.Error("the kubeconfig was written before the hub has let it in")
		}
		if err := a.Health.Ready(); err == nil || !strings.Contains(err.Error(), "accept") {
			t.Errorf("its readiness is %v", err)
		}
		w.Set(func() { refusal = apierrors.NewUnauthorized("not mapped yet") })
		agenttest.Pass(time.Minute)
		w.Set(func() { refusal = nil })
		w.Accept()
		agenttest.Pass(time.Minute)
		s := w.State()
		if len(s.Kubeconfig) == 0 || len(s.Key) > 0 || len(w.CSRs()) > 0 || len(w.Events()) > 0 {
			t.Error("it has not joined, or with a certificate")
		}
		if w.Condition(registration.ConditionJoined).Status != "True" {
			t.Errorf("the status is %+v", w.Cluster().Status)
		}
		stop()

		stop = start(t, w.newAWSAgent(func() error { return nil }))
		agenttest.Pass(time.Minute)
		stop()
		if n := w.Asked("bootstrap create managedclusters"); n != 1 {
			t.Errorf("the cluster was made %d times", n)
		}
	})
}

// The hub deletes the role of a deleted cluster, and so AWS responds as the hub does to a certificate.
func TestAWS_DeletedClusterReregistersAfterRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var refusal error
		stop := start(t, w.newAWSAgent(func() error { return refusal }))
		w.Accept()
		agenttest.Pass(time.Minute)
		stop()
		w.Set(func() {
			refusal = &url.Error{Op: "Get", URL: "x", Err: &identity.RefusedError{Message: "AccessDenied"}}
		})
		if err := w.HubClusters.Tracker().Delete(clusterv1.SchemeGroupVersion.WithResource("managedclusters"), "", agenttest.ClusterName); err != nil {
			t.Fatal(err)
		}
		stop = start(t, w.newAWSAgent(func() error { return refusal }))
		agenttest.Pass(time.Minute)
		if w.Cluster().Annotations[registration.AnnotationManagedClusterARN] != managedARN {
			t.Error("it is registered without its ARN")
		}
		w.Set(func() { refusal = nil })
		agenttest.Pass(10 * time.Minute)
		if got := w.Condition(registration.ConditionJoined); got.Status != metav1.ConditionTrue {
			t.Errorf("let in again, its condition is %+v", got)
		}
		stop()
	})
}
