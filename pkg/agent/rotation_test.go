// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"crypto/x509"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/registration"
)

func TestRotation_IsAtFourFifthsOfALifeGiveOrTakeATwentieth(t *testing.T) {
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	leaf := &x509.Certificate{NotBefore: from, NotAfter: from.Add(100 * time.Hour)}
	for random, want := range map[float64]time.Duration{0: 75 * time.Hour, 0.5: 80 * time.Hour, 1: 85 * time.Hour} {
		if got := renewAt(leaf, random).Sub(from); got.Round(time.Second) != want {
			t.Errorf("with %v it is after %s, want %s", random, got, want)
		}
	}
}

func TestRotation_UsesItsOwnIdentityAndANewKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t) // certificates live 10 h
		_, stop := w.joined()
		before, bootstrapped := w.secret(), w.asked(bootstrapUser)
		pass(7*time.Hour + 50*time.Minute)
		if n := len(w.listCSRs()); n != 1 {
			t.Fatalf("before its time there are %d requests", n)
		}
		pass(30 * time.Minute)
		w.approve()
		pass(10 * time.Minute)
		after := w.secret()
		if string(after.key) == string(before.key) || string(after.cert) == string(before.cert) || len(after.nextKey) > 0 {
			t.Error("it has not changed its key and its certificate")
		}
		if string(after.kubeconfig) != string(before.kubeconfig) || after.agentName != before.agentName {
			t.Error("something else has changed with them")
		}
		if n := w.asked(bootstrapUser); n != bootstrapped {
			t.Error("the bootstrap kubeconfig was used")
		}
		c := w.cluster()
		if got := condition(c, registration.ConditionCertificateRotated); got.Status != metav1.ConditionTrue || got.Reason != registration.ReasonCertificateUpdated {
			t.Errorf("the condition is %+v", got)
		}
		if c.Annotations[registration.AnnotationAgentKey] != mustHash(t, before.key) {
			t.Error("the agent has changed the key that the cluster was made with, which is the hub's to decide")
		}
		stop()
	})
}

func TestRotation_AFailureIsAConditionAndIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, stop := w.joined()
		w.set(func() {
			w.refuse = func(_, verb, resource string) error {
				if resource == "certificatesigningrequests" {
					return apierrors.NewInternalError(errors.New("no signer"))
				}
				return nil
			}
		})
		pass(8*time.Hour + 10*time.Minute)
		if got := condition(w.cluster(), registration.ConditionCertificateRotated); got.Status != metav1.ConditionFalse ||
			got.Reason != registration.ReasonCertificateFailed || !strings.Contains(got.Message, "no signer") {
			t.Errorf("the condition is %+v", got)
		}
		key := w.secret().nextKey
		w.set(func() { w.refuse = nil })
		pass(6 * time.Minute)
		w.approve()
		pass(10 * time.Minute)
		if s := w.secret(); len(key) == 0 || string(s.key) != string(key) {
			t.Error("it was not renewed with the key of the first try")
		}
		if got := condition(w.cluster(), registration.ConditionCertificateRotated); got.Status != metav1.ConditionTrue {
			t.Errorf("afterwards the condition is %+v", got)
		}
		stop()
	})
}

func TestRotation_ARestartUnderWayResumesWithTheSameKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, stop := w.joined()
		pass(8*time.Hour + 10*time.Minute)
		stop()
		under := w.secret()
		if under.nextCSR == "" || string(under.nextKey) == string(under.key) {
			t.Fatal("no renewal is under way")
		}
		stop = start(t, w.newAgent())
		pass(time.Minute)
		w.approve()
		pass(10 * time.Minute)
		if s := w.secret(); string(s.key) != string(under.nextKey) || len(w.listCSRs()) != 2 {
			t.Errorf("it asked for another key, by %d requests", len(w.listCSRs()))
		}
		stop()
	})
}

func TestRotation_AnExpiredCertificateFallsBackToTheBootstrapKubeconfigWithTheKeyThatTheHubKnows(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			_, stop := w.joined()
			before := w.secret()
			w.set(func() { w.granted = false }) // denied, so that no renewal succeeds
			if restarted {
				stop()
			}
			pass(11 * time.Hour)
			if restarted {
				stop = start(t, w.newAgent())
				pass(time.Minute)
			}
			s := w.secret()
			if string(s.nextKey) != string(before.key) || s.nextCSR == "" {
				t.Fatal("it does not ask for the key that the hub knows")
			}
			if len(w.events()) > 0 {
				t.Errorf("it says that the key is new: %q", w.events())
			}
			w.accept()
			pass(2 * time.Minute)
			if s := w.secret(); string(s.key) != string(before.key) || string(s.cert) == string(before.cert) {
				t.Error("it did not get a new certificate for its key")
			}
			if w.lease().Spec.RenewTime.Time.Before(time.Now().Add(-time.Minute)) {
				t.Error("the lease is not renewed again")
			}
			stop()
		})
	}
}
