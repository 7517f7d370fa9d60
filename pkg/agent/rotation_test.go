// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/agent/agenttest"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

func TestRotation_UsesOwnIdentityAndNewKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t) // certificates are valid for 10 h
		_, stop := w.joined()
		before, bootstrapped := w.State(), w.Asked(agenttest.BootstrapUser)
		agenttest.Pass(7*time.Hour + 50*time.Minute)
		if n := len(w.CSRs()); n != 1 {
			t.Fatalf("before its time there are %d requests", n)
		}
		agenttest.Pass(30 * time.Minute)
		w.Approve()
		agenttest.Pass(10 * time.Minute)
		after := w.State()
		if string(after.Key) == string(before.Key) || string(after.Cert) == string(before.Cert) || len(after.NextKey) > 0 {
			t.Error("it has not changed its key and its certificate")
		}
		if string(after.Kubeconfig) != string(before.Kubeconfig) || after.AgentName != before.AgentName {
			t.Error("something else has changed with them")
		}
		if n := w.Asked(agenttest.BootstrapUser); n != bootstrapped {
			t.Error("the bootstrap kubeconfig was used")
		}
		c := w.Cluster()
		if got := w.Condition(registration.ConditionCertificateRotated); got.Status != metav1.ConditionTrue || got.Reason != registration.ReasonCertificateUpdated {
			t.Errorf("the condition is %+v", got)
		}
		if c.Annotations[registration.AnnotationAgentKey] != agenttest.KeyHash(t, before.Key) {
			t.Error("the agent has changed the key that the cluster was made with, which is the hub's to decide")
		}
		stop()
	})
}

func TestRotation_RetriesAndReportsFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, stop := w.joined()
		w.Set(func() {
			w.Refuse = func(_, verb, resource string) error {
				if resource == "certificatesigningrequests" {
					return apierrors.NewInternalError(errors.New("no signer"))
				}
				return nil
			}
		})
		agenttest.Pass(8*time.Hour + 10*time.Minute)
		if got := w.Condition(registration.ConditionCertificateRotated); got.Status != metav1.ConditionFalse ||
			got.Reason != registration.ReasonCertificateFailed || !strings.Contains(got.Message, "no signer") {
			t.Errorf("the condition is %+v", got)
		}
		key := w.State().NextKey
		w.Set(func() { w.Refuse = nil })
		agenttest.Pass(6 * time.Minute)
		w.Approve()
		agenttest.Pass(10 * time.Minute)
		if s := w.State(); len(key) == 0 || string(s.Key) != string(key) {
			t.Error("it was not renewed with the key of the first try")
		}
		if got := w.Condition(registration.ConditionCertificateRotated); got.Status != metav1.ConditionTrue {
			t.Errorf("afterwards the condition is %+v", got)
		}
		stop()
	})
}

func TestRotation_RestartResumesWithSameKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, stop := w.joined()
		agenttest.Pass(8*time.Hour + 10*time.Minute)
		stop()
		under := w.State()
		if under.NextCSR == "" || string(under.NextKey) == string(under.Key) {
			t.Fatal("no renewal is under way")
		}
		stop = start(t, w.newAgent())
		agenttest.Pass(time.Minute)
		w.Approve()
		agenttest.Pass(10 * time.Minute)
		if s := w.State(); string(s.Key) != string(under.NextKey) || len(w.CSRs()) != 2 {
			t.Errorf("it asked for another key, by %d requests", len(w.CSRs()))
		}
		stop()
	})
}

func TestRotation_ExpiredCertificateUsesBootstrapKubeconfigAndKnownKey(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			_, stop := w.joined()
			before := w.State()
			w.Set(func() { w.Granted = false }) // denied, so that no renewal succeeds
			if restarted {
				stop()
			}
			agenttest.Pass(11 * time.Hour)
			if restarted {
				stop = start(t, w.newAgent())
				agenttest.Pass(time.Minute)
			}
			s := w.State()
			if string(s.NextKey) != string(before.Key) || s.NextCSR == "" {
				t.Fatal("it does not ask for the key that the hub knows")
			}
			if len(w.Events()) > 0 {
				t.Errorf("it says that the key is new: %q", w.Events())
			}
			w.Accept()
			agenttest.Pass(2 * time.Minute)
			if s := w.State(); string(s.Key) != string(before.Key) || string(s.Cert) == string(before.Cert) {
				t.Error("it did not get a new certificate for its key")
			}
			if w.Lease().Spec.RenewTime.Time.Before(time.Now().Add(-time.Minute)) {
				t.Error("the lease is not renewed again")
			}
			stop()
		})
	}
}
