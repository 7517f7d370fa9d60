// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterhub/clusterhub/pkg/agent/agenttest"
	"github.com/clusterhub/clusterhub/pkg/agent/hub"
	"github.com/clusterhub/clusterhub/pkg/agent/identity/csr"
	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

func TestJoin_WorksWithMinimalBootstrapRights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.newAgent()
		a.Cluster.ServerURL, a.Cluster.ServerCA = "https://api.c1:6443", []byte("ca of c1")
		a.Cluster.Annotations = map[string]string{annotationPrefix + "x": "y"}
		stop := start(t, a)
		agenttest.Pass(5 * time.Second)

		made := w.Cluster()
		before := w.State()
		if got := made.Annotations[registration.AnnotationAgentKey]; got != agenttest.KeyHash(t, before.NextKey) {
			t.Errorf("the cluster names the key %q", got)
		}
		if made.Annotations[annotationPrefix+"x"] != "y" || made.Spec.LeaseDurationSeconds != 60 || made.Spec.HubAcceptsClient {
			t.Errorf("the cluster was made as %+v, %+v", made.Annotations, made.Spec)
		}
		if c := made.Spec.ManagedClusterClientConfigs; len(c) != 1 || c[0].URL != "https://api.c1:6443" || string(c[0].CABundle) != "ca of c1" {
			t.Errorf("the cluster was made with the addresses %v", c)
		}
		if err := a.Health.Ready(); err == nil || !strings.Contains(err.Error(), "accept") {
			t.Errorf("waiting, its readiness is: %v", err)
		}

		w.Accept()
		agenttest.Pass(time.Minute)
		after := w.State()
		if string(after.Key) != string(before.NextKey) || len(after.NextKey) > 0 || after.NextCSR != "" {
			t.Error("the key in use is not the one that was asked for, or something was left over")
		}
		if !meta.IsStatusConditionTrue(w.Cluster().Status.Conditions, registration.ConditionJoined) {
			t.Errorf("the cluster has not joined: %+v", w.Cluster().Status)
		}
		if w.Lease().Spec.RenewTime == nil {
			t.Error("the lease was not renewed")
		}
		if err := a.Health.Ready(); err != nil {
			t.Errorf("joined, it is not ready: %v", err)
		}
		if n := w.Asked("bootstrap create managedclusters"); n != 1 {
			t.Errorf("the cluster was made %d times", n)
		}
		if events := w.Events(); len(events) > 0 {
			t.Errorf("an ordinary join has events: %q", events)
		}
		stop()
	})
}

func TestJoin_RequestIsApprovable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stop := start(t, w.agentOf(w.joiner(), &csr.RegisterDriver{ExpirationSeconds: 3600}))
		agenttest.Pass(5 * time.Second)
		requests := w.CSRs()
		if len(requests) != 1 {
			t.Fatalf("there are %d requests", len(requests))
		}
		request := requests[0]
		if request.GenerateName != "c1-" || request.Labels[registration.ClusterNameLabel] != "c1" || request.Spec.SignerName != registration.SignerName ||
			request.Spec.ExpirationSeconds == nil || *request.Spec.ExpirationSeconds != 3600 {
			t.Errorf("the request is %+v", request)
		}
		if want := []certificatesv1.KeyUsage{"digital signature", "client auth"}; !slices.Equal(request.Spec.Usages, want) {
			t.Errorf("its usages are %v", request.Spec.Usages)
		}
		block, _ := pem.Decode(request.Spec.Request)
		parsed, err := x509.ParseCertificateRequest(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		agentName := w.State().AgentName
		if parsed.Subject.CommonName != "system:open-cluster-management:c1:"+agentName || agentName == "" {
			t.Errorf("it is for %q", parsed.Subject.CommonName)
		}
		groups := slices.Sorted(slices.Values(parsed.Subject.Organization))
		if !slices.Equal(groups, []string{"system:open-cluster-management:c1", "system:open-cluster-management:managed-clusters"}) {
			t.Errorf("its groups are %q", groups)
		}
		stop()
	})
}

func TestJoin_WaitsWithFewRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stop := start(t, w.newAgent())
		agenttest.Pass(12 * time.Hour)
		if n := w.Asked("bootstrap"); n > 12*60*60/10 {
			t.Errorf("in 12 hours the hub was asked %d times", n)
		}
		w.Accept()
		agenttest.Pass(time.Minute)
		if len(w.State().Cert) == 0 {
			t.Error("it did not join once it was accepted")
		}
		stop()
	})
}

func TestJoin_RecreatesMissingRequestForSameKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stop := start(t, w.newAgent())
		agenttest.Pass(5 * time.Second)
		key, first := w.State().NextKey, w.State().NextCSR
		if err := w.HubKube.Tracker().Delete(certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests"), "", first); err != nil {
			t.Fatal(err)
		}
		agenttest.Pass(2 * time.Minute)
		if s := w.State(); s.NextCSR == first || s.NextCSR == "" || string(s.NextKey) != string(key) {
			t.Errorf("after %s came %q", first, s.NextCSR)
		}
		w.Accept()
		agenttest.Pass(time.Minute)
		if string(w.State().Key) != string(key) {
			t.Error("the certificate is for another key")
		}
		stop()
	})
}

func TestJoin_DeniedRequestIsRecreatedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stop := start(t, w.newAgent())
		agenttest.Pass(5 * time.Second)
		csr := w.CSRs()[0]
		csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied, Message: "no"}}
		if err := w.HubKube.Tracker().Update(certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests"), &csr, ""); err != nil {
			t.Fatal(err)
		}
		agenttest.Pass(time.Hour)
		if n := len(w.CSRs()); n != 1 {
			t.Errorf("there are %d requests", n)
		}
		stop()
	})
}

func TestJoin_LostSecretNeedsAdmin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, stop := w.joined()
		stop()
		lost := w.State()
		if err := w.Spoke.CoreV1().Secrets(agenttest.Namespace).Delete(t.Context(), registration.HubKubeconfigSecret, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		stop = start(t, w.newAgent())
		agenttest.Pass(10 * time.Second)
		s := w.State()
		if string(s.NextKey) == string(lost.Key) || s.NextCSR == "" {
			t.Error("it has not asked for a new key")
		}
		events := w.Events()
		if len(events) != 1 || !strings.Contains(events[0], "approve certificate request "+s.NextCSR) {
			t.Errorf("the events are %q", events)
		}
		w.Accept()
		agenttest.Pass(2 * time.Minute)
		if got := w.Cluster().Annotations[registration.AnnotationAgentKey]; got != agenttest.KeyHash(t, lost.Key) {
			t.Error("the agent has changed the key that the cluster was made with, which is the hub's to decide")
		}
		stop()
	})
}

func TestJoin_RejectsOtherNameThanInSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, stop := w.joined()
		stop()
		a := w.newAgent()
		a.Cluster.Name = "other"
		err := a.run(agenttest.Quiet(t))
		if err == nil || !strings.Contains(err.Error(), "other") || !strings.Contains(err.Error(), "c1") || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v", err)
		}
	})
}

func TestJoin_NamePrecedence(t *testing.T) {
	w := newWorld(t)
	a := w.newAgent()
	a.Cluster.Name = ""
	first, err := a.Start(t.Context())
	if err != nil || first.ClusterName != "uid-of-kube-system" || first.AgentName == "" {
		t.Fatalf("got %q, %q, %v", first.ClusterName, first.AgentName, err)
	}
	again, err := w.newAgentNamed("").Start(t.Context())
	if err != nil || again.ClusterName != first.ClusterName || again.AgentName != first.AgentName {
		t.Errorf("the second time got %q, %q, %v", again.ClusterName, again.AgentName, err)
	}
}

func (w *world) newAgentNamed(name string) *agent {
	a := w.newAgent()
	a.Cluster.Name = name
	return a
}

func TestJoin_DoesNotChangeExistingCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		if err := w.HubClusters.Tracker().Add(&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: agenttest.ClusterName,
			Labels: map[string]string{"made": "by-admin"}}}); err != nil {
			t.Fatal(err)
		}
		stop := start(t, w.newAgent())
		agenttest.Pass(10 * time.Second)
		if c := w.Cluster(); c.Labels["made"] != "by-admin" || len(c.Annotations) > 0 {
			t.Errorf("it became %+v", c)
		}
		if len(w.Events()) != 1 {
			t.Errorf("the events are %q", w.Events())
		}
		stop()
	})
}

func TestJoin_WaitsForBootstrapKubeconfig(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.newAgent()
		a.Bootstrap = (&hub.Bootstrap{Client: w.Spoke, Namespace: agenttest.Namespace}).Read
		stop := start(t, a)
		agenttest.Pass(time.Minute)
		if err := a.Health.Ready(); err == nil || !strings.Contains(err.Error(), "bootstrap-hub-kubeconfig") {
			t.Errorf("its readiness is: %v", err)
		}
		if n := w.Asked(""); n > 0 {
			t.Errorf("the hub was asked %d times", n)
		}
		stop()
	})
}

// An agent that was offline for the whole lifetime of its certificate has a key that the hub knows, and needs another token.
func TestJoin_ReportsExpiredCertificateAndToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, stop := w.joined()
		stop()
		key := w.State().Key
		agenttest.Pass(400 * 24 * time.Hour)
		w.Set(func() {
			w.Refuse = func(user, _, _ string) error {
				if user == agenttest.BootstrapUser {
					return apierrors.NewUnauthorized("the token has expired")
				}
				return nil
			}
		})
		a := w.newAgent()
		stop = start(t, a)
		agenttest.Pass(5 * time.Minute)
		want := []string{"the certificate has expired", "kubectl hub get token"}
		for _, text := range want {
			if err := a.Health.Ready(); err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("its readiness is %v, without %q", err, text)
			}
			if events := w.Events(); len(events) != 1 || !strings.Contains(events[0], text) {
				t.Errorf("the events are %q, without one %q", events, text)
			}
		}
		w.Set(func() { w.Refuse = nil })
		agenttest.Pass(time.Minute)
		w.Approve()
		agenttest.Pass(time.Minute)
		if string(w.State().Key) != string(key) || a.Health.Ready() != nil {
			t.Errorf("with another token it does not come back: %v", a.Health.Ready())
		}
		stop()
	})
}
