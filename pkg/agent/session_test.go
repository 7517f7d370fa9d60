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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterhub/clusterhub/pkg/agent/agenttest"
	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

func TestSession_RestartNeedsNoBootstrapKubeconfig(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, stop := w.joined()
		stop()
		before, asked := w.State(), w.Asked(agenttest.BootstrapUser)
		a := w.newAgentNamed("")
		a.Bootstrap = func(context.Context) (*clientcmdapi.Config, error) { return nil, errors.New("there is none") }
		stop = start(t, a)
		agenttest.Pass(time.Minute)
		if n := w.Asked(agenttest.BootstrapUser); n != asked {
			t.Errorf("the bootstrap kubeconfig was used %d times", n-asked)
		}
		if after := w.State(); string(after.Cert) != string(before.Cert) || after.AgentName != before.AgentName {
			t.Error("the identity has changed")
		}
		if err := a.Health.Ready(); err != nil {
			t.Error(err)
		}
		stop()
	})
}

func TestSession_UnknownCertificateRejoins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, stop := w.joined()
		before := w.State()
		w.Set(func() {
			w.Refuse = func(user, _, _ string) error {
				if user != agenttest.BootstrapUser {
					return apierrors.NewUnauthorized("unknown authority")
				}
				return nil
			}
		})
		agenttest.Pass(10 * time.Minute)
		s := w.State()
		if s.NextCSR == "" || string(s.NextKey) != string(before.Key) {
			t.Fatal("it has not asked again, with the key that the hub knows")
		}
		if s.Refusal != registration.RefusalUnknown {
			t.Errorf("the secret says that it is refused: %q", s.Refusal)
		}
		w.Set(func() { w.Refuse = nil })
		w.Approve()
		agenttest.Pass(10 * time.Minute)
		if after := w.State(); len(after.Cert) == 0 || after.Refusal != "" {
			t.Errorf("it has lost its identity, or says that it is refused: %q", after.Refusal)
		}
		if w.Lease().Spec.RenewTime.Time.Before(time.Now().Add(-time.Minute)) {
			t.Error("the lease is not renewed again")
		}
		stop()
	})
}

func TestSession_DeniedClusterRetriesAndResumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, stop := w.joined()
		before := w.State()
		w.Set(func() { w.Granted = false })
		agenttest.Pass(10 * time.Minute)
		asked := w.Asked("get leases")
		agenttest.Pass(2 * time.Hour)
		if n := w.Asked("get leases") - asked; n < 120 || n > 170 {
			t.Errorf("denied, it looked at the lease %d times in 2 hours", n)
		}
		if err := a.Health.Ready(); err == nil || !strings.Contains(err.Error(), "denied") {
			t.Errorf("its readiness is %v", err)
		}
		if refusal := w.State().Refusal; refusal != registration.RefusalNoCluster {
			t.Errorf("the secret says that it is refused: %q", refusal)
		}
		w.Set(func() { w.Granted = true })
		agenttest.Pass(2 * time.Minute)
		if refusal := w.State().Refusal; refusal != "" {
			t.Errorf("the secret still says that it is refused: %q", refusal)
		}
		if err := a.Health.Ready(); err != nil {
			t.Error(err)
		}
		if after := w.State(); string(after.Cert) != string(before.Cert) {
			t.Error("it has another identity")
		}
		stop()
	})
}

// TestSession_RecordsDenialInSecret verifies that the secret has the refusal until the cluster is accepted again, for users who
// can read the secret and not the hub.
func TestSession_RecordsDenialInSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, stop := w.joined()
		for _, accepted := range []bool{false, true} {
			c := w.Cluster()
			c.Spec.HubAcceptsClient = accepted
			w.Update(c)
			agenttest.Pass(2 * time.Minute)
			want := registration.RefusalNotAccepted
			if accepted {
				want = ""
			}
			if refusal := w.State().Refusal; refusal != want {
				t.Errorf("accepted: %t, and the secret says %q", accepted, refusal)
			}
		}
		stop()
	})
}

func TestSession_FollowsMovedHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, stop := w.joined()
		stop()
		a := w.newAgent()
		a.Bootstrap = func(context.Context) (*clientcmdapi.Config, error) {
			config := agenttest.BootstrapKubeconfig()
			config.Clusters["hub"].Server = "https://new:6443"
			return config, nil
		}
		stop = start(t, a)
		agenttest.Pass(time.Minute)
		if got := agenttest.LoadKubeconfig(t, w.State().Kubeconfig).Clusters["default-cluster"].Server; got != "https://new:6443" {
			t.Errorf("the kubeconfig names %s", got)
		}
		stop()
	})
}

func TestSession_DeletedSecretDoesNotLoseIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, stop := w.joined()
		if err := w.Spoke.CoreV1().Secrets(agenttest.Namespace).Delete(t.Context(), registration.HubKubeconfigSecret, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		agenttest.Pass(8*time.Hour + 10*time.Minute)
		w.Approve()
		agenttest.Pass(10 * time.Minute)
		if s := w.State(); len(s.Cert) == 0 || len(s.Kubeconfig) == 0 || s.ClusterName != agenttest.ClusterName || len(w.Events()) > 0 {
			t.Error("after the renewal the secret is not whole again")
		}
		stop()
	})
}

func TestSession_DeletedClusterReregistersOnlyAfterRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, stop := w.joined()
		identity := w.State()
		remove := func() {
			t.Helper()
			w.Set(func() { w.Granted = false })
			if err := w.HubClusters.Tracker().Delete(clusterv1.SchemeGroupVersion.WithResource("managedclusters"), "", agenttest.ClusterName); err != nil {
				t.Fatal(err)
			}
		}
		creates := func() int { return w.Asked(agenttest.BootstrapUser + " create managedclusters") }
		remove()
		before := creates()
		agenttest.Pass(time.Hour)
		if n := creates(); n != before {
			t.Fatalf("it came back by itself, by %d requests", n-before)
		}
		stop()

		stop = start(t, w.newAgent())
		agenttest.Pass(time.Minute)
		if c := w.Cluster(); c.Spec.HubAcceptsClient || c.Annotations[registration.AnnotationAgentKey] != agenttest.KeyHash(t, identity.Key) {
			t.Errorf("it is registered as %+v", c)
		}
		before = creates()
		agenttest.Pass(time.Hour)
		if n := creates(); n != before {
			t.Errorf("%d further requests to register it", n-before)
		}
		w.Set(func() { w.Granted = true })
		agenttest.Pass(10 * time.Minute)
		if got := w.Condition(registration.ConditionJoined); got.Status != metav1.ConditionTrue {
			t.Errorf("accepted again, its condition is %+v", got)
		}
		if s := w.State(); string(s.Cert) != string(identity.Cert) {
			t.Error("it asked for another certificate")
		}
		stop()
	})
}

// A denied cluster exists, and a registration that fails at the moment is retried.
func TestSession_RetriesReregistration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, stop := w.joined()
		stop()
		w.Set(func() {
			w.Granted = false
			w.Refuse = func(user, verb, _ string) error {
				if user == agenttest.BootstrapUser && verb == "create" {
					return apierrors.NewUnauthorized("the token has expired")
				}
				return nil
			}
		})
		creates := func() int { return w.Asked(agenttest.BootstrapUser + " create managedclusters") }
		before := creates()
		stop = start(t, w.newAgent())
		agenttest.Pass(30 * time.Minute)
		if n := creates() - before; n < 2 || n > 200 {
			t.Errorf("it was tried %d times in half an hour", n)
		}
		w.Set(func() { w.Refuse = nil })
		agenttest.Pass(10 * time.Minute)
		before = creates()
		agenttest.Pass(time.Hour)
		if n := creates() - before; n != 0 {
			t.Errorf("the cluster is there, and yet %d more requests to register it", n)
		}
		stop()
	})
}
