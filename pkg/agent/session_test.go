// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"crypto/x509"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

func condition(c *clusterv1.ManagedCluster, conditionType string) metav1.Condition {
	found := meta.FindStatusCondition(c.Status.Conditions, conditionType)
	if found == nil {
		return metav1.Condition{}
	}
	return *found
}

func TestSession_ARestartNeedsNoBootstrapKubeconfig(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, stop := w.joined()
		stop()
		before, asked := w.secret(), w.asked(bootstrapUser)
		a := w.newAgentNamed("")
		a.bootstrap = func(context.Context) (*clientcmdapi.Config, error) { return nil, errors.New("there is none") }
		stop = start(t, a)
		pass(time.Minute)
		if n := w.asked(bootstrapUser); n != asked {
			t.Errorf("the bootstrap kubeconfig was used %d times", n-asked)
		}
		if after := w.secret(); string(after.cert) != string(before.cert) || after.agentName != before.agentName {
			t.Error("the identity has changed")
		}
		if err := a.health.ready(); err != nil {
			t.Error(err)
		}
		stop()
	})
}

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
		if c.Annotations[registration.AnnotationAgentKey] != mustHash(t, after.key) {
			t.Error("the hub does not know the new key")
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

func TestSession_AHubThatDoesNotKnowTheCertificateIsJoinedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, stop := w.joined()
		before := w.secret()
		w.set(func() {
			w.refuse = func(user, _, _ string) error {
				if user != bootstrapUser {
					return apierrors.NewUnauthorized("unknown authority")
				}
				return nil
			}
		})
		pass(10 * time.Minute)
		s := w.secret()
		if s.nextCSR == "" || string(s.nextKey) != string(before.key) {
			t.Fatal("it has not asked again, with the key that the hub knows")
		}
		w.set(func() { w.refuse = nil })
		w.approve()
		pass(10 * time.Minute)
		if after := w.secret(); len(after.cert) == 0 {
			t.Error("it has lost its identity")
		}
		if w.lease().Spec.RenewTime.Time.Before(time.Now().Add(-time.Minute)) {
			t.Error("the lease is not renewed again")
		}
		stop()
	})
}

func TestLease_TheJitterOnlyShortensByAtMostAQuarter(t *testing.T) {
	for _, random := range []float64{0, 0.3, 0.999999} {
		if got := jittered(time.Minute, func() float64 { return random }); got > time.Minute || got < 45*time.Second {
			t.Errorf("with %v a minute became %s", random, got)
		}
	}
}

func TestLease_IsRenewedAsOftenAsTheHubSaysAndOnlyInItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, stop := w.joined()
		before := w.lease()
		c := w.cluster()
		c.Spec.LeaseDurationSeconds = 20
		if err := w.hubClusters.Tracker().Update(clusterv1.SchemeGroupVersion.WithResource("managedclusters"), c, ""); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Minute) // until it knows
		asked := w.asked("update leases")
		pass(10 * time.Minute)
		if n := w.asked("update leases") - asked; n < 30 || n > 40 {
			t.Errorf("in 10 minutes the lease was renewed %d times", n)
		}
		after := w.lease()
		after.Spec.RenewTime = before.Spec.RenewTime
		if after.Spec.String() != before.Spec.String() {
			t.Errorf("of the lease more than its time has changed: %v", after.Spec)
		}
		if a.health.ready() != nil {
			t.Error(a.health.ready())
		}
		stop()
	})
}

func TestLease_AClockThatTheHubFindsWrongStopsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, stop := w.joined()
		c := w.cluster()
		meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: registration.ConditionClockSynced,
			Status: metav1.ConditionFalse, Reason: registration.ReasonClockOutOfSync})
		if err := w.hubClusters.Tracker().Update(clusterv1.SchemeGroupVersion.WithResource("managedclusters"), c, ""); err != nil {
			t.Fatal(err)
		}
		pass(time.Hour)
		if w.lease().Spec.RenewTime.Time.Before(time.Now().Add(-time.Minute)) {
			t.Error("the lease is not renewed any more")
		}
		if condition(w.cluster(), registration.ConditionClockSynced).Status != metav1.ConditionFalse {
			t.Error("the agent has changed the hub's condition")
		}
		stop()
	})
}

func TestSession_ADeniedClusterKeepsTryingAndResumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, stop := w.joined()
		before := w.secret()
		w.set(func() { w.granted = false })
		pass(10 * time.Minute)
		asked := w.asked("get leases")
		pass(2 * time.Hour)
		if n := w.asked("get leases") - asked; n < 120 || n > 170 {
			t.Errorf("denied, it looked at the lease %d times in 2 hours", n)
		}
		if err := a.health.ready(); err == nil || !strings.Contains(err.Error(), "denied") {
			t.Errorf("its readiness is %v", err)
		}
		w.set(func() { w.granted = true })
		pass(2 * time.Minute)
		if err := a.health.ready(); err != nil {
			t.Error(err)
		}
		if after := w.secret(); string(after.cert) != string(before.cert) {
			t.Error("it has another identity")
		}
		stop()
	})
}

func TestSession_AHubThatHasMovedIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, stop := w.joined()
		stop()
		a := w.newAgent()
		a.bootstrap = func(context.Context) (*clientcmdapi.Config, error) {
			config := bootstrapKubeconfig()
			config.Clusters["hub"].Server = "https://new:6443"
			return config, nil
		}
		stop = start(t, a)
		pass(time.Minute)
		if got := loadKubeconfig(t, w.secret().kubeconfig).Clusters[kubeconfigCluster].Server; got != "https://new:6443" {
			t.Errorf("the kubeconfig names %s", got)
		}
		stop()
	})
}

func TestSession_ASecretThatIsDeletedUnderWayIsNoLostIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, stop := w.joined()
		if err := w.spoke.CoreV1().Secrets(namespace).Delete(t.Context(), registration.HubKubeconfigSecret, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		pass(8*time.Hour + 10*time.Minute)
		w.approve()
		pass(10 * time.Minute)
		if s := w.secret(); len(s.cert) == 0 || len(s.kubeconfig) == 0 || s.clusterName != clusterName || len(w.events()) > 0 {
			t.Error("after the renewal the secret is not whole again")
		}
		stop()
	})
}

func TestState_KeysOfOthersAreLeftInTheSecret(t *testing.T) {
	w := newWorld(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: registration.HubKubeconfigSecret},
		Data: map[string][]byte{"others": []byte("x")}}
	if err := w.spoke.Tracker().Add(secret); err != nil {
		t.Fatal(err)
	}
	s := &store{client: w.spoke, namespace: namespace}
	if _, err := s.update(t.Context(), func(s *state) { s.clusterName = "c1" }); err != nil {
		t.Fatal(err)
	}
	got, err := w.spoke.CoreV1().Secrets(namespace).Get(t.Context(), secret.Name, metav1.GetOptions{})
	if err != nil || string(got.Data["others"]) != "x" || string(got.Data[registration.KeyClusterName]) != "c1" {
		t.Errorf("got %v, %v", got.Data, err)
	}
}

func TestSession_ADeletedClusterIsRegisteredAnewByARestartAndNotBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, stop := w.joined()
		identity := w.secret()
		remove := func() {
			t.Helper()
			w.set(func() { w.granted = false })
			if err := w.hubClusters.Tracker().Delete(clusterv1.SchemeGroupVersion.WithResource("managedclusters"), "", clusterName); err != nil {
				t.Fatal(err)
			}
		}
		creates := func() int { return w.asked(bootstrapUser + " create managedclusters") }
		remove()
		before := creates()
		pass(time.Hour)
		if n := creates(); n != before {
			t.Fatalf("it came back by itself, by %d requests", n-before)
		}
		stop()

		stop = start(t, w.newAgent())
		pass(time.Minute)
		if c := w.cluster(); c.Spec.HubAcceptsClient || c.Annotations[registration.AnnotationAgentKey] != mustHash(t, identity.key) {
			t.Errorf("it is registered as %+v", c)
		}
		before = creates()
		pass(time.Hour)
		if n := creates(); n != before {
			t.Errorf("%d further requests to register it", n-before)
		}
		w.set(func() { w.granted = true })
		pass(10 * time.Minute)
		if got := condition(w.cluster(), registration.ConditionJoined); got.Status != metav1.ConditionTrue {
			t.Errorf("accepted again, its condition is %+v", got)
		}
		if s := w.secret(); string(s.cert) != string(identity.cert) {
			t.Error("it asked for another certificate")
		}
		stop()
	})
}

// A cluster that is denied is there, and what cannot be registered now is tried again.
func TestSession_RegisteringAnewIsTriedUntilTheHubAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, stop := w.joined()
		stop()
		w.set(func() {
			w.granted = false
			w.refuse = func(user, verb, _ string) error {
				if user == bootstrapUser && verb == "create" {
					return apierrors.NewUnauthorized("the token has expired")
				}
				return nil
			}
		})
		creates := func() int { return w.asked(bootstrapUser + " create managedclusters") }
		before := creates()
		stop = start(t, w.newAgent())
		pass(30 * time.Minute)
		if n := creates() - before; n < 2 || n > 200 {
			t.Errorf("it was tried %d times in half an hour", n)
		}
		w.set(func() { w.refuse = nil })
		pass(10 * time.Minute)
		before = creates()
		pass(time.Hour)
		if n := creates() - before; n != 0 {
			t.Errorf("the cluster is there, and yet %d more requests to register it", n)
		}
		stop()
	})
}
