// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
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
