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

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

func TestJoin_WorksWithTheSmallestBootstrapRights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.newAgent()
		a.settings.serverURL, a.settings.serverCA = "https://api.c1:6443", []byte("ca of c1")
		a.settings.annotations = map[string]string{annotationPrefix + "x": "y"}
		stop := start(t, a)
		pass(5 * time.Second)

		made := w.cluster()
		before := w.secret()
		if got := made.Annotations[registration.AnnotationAgentKey]; got != mustHash(t, before.nextKey) {
			t.Errorf("the cluster names the key %q", got)
		}
		if made.Annotations[annotationPrefix+"x"] != "y" || made.Spec.LeaseDurationSeconds != 60 || made.Spec.HubAcceptsClient {
			t.Errorf("the cluster was made as %+v, %+v", made.Annotations, made.Spec)
		}
		if c := made.Spec.ManagedClusterClientConfigs; len(c) != 1 || c[0].URL != "https://api.c1:6443" || string(c[0].CABundle) != "ca of c1" {
			t.Errorf("the cluster was made with the addresses %v", c)
		}
		if err := a.health.ready(); err == nil || !strings.Contains(err.Error(), "accept") {
			t.Errorf("waiting, its readiness is: %v", err)
		}

		w.accept()
		pass(time.Minute)
		after := w.secret()
		if string(after.key) != string(before.nextKey) || len(after.nextKey) > 0 || after.nextCSR != "" {
			t.Error("the key in use is not the one that was asked for, or something was left over")
		}
		if !meta.IsStatusConditionTrue(w.cluster().Status.Conditions, registration.ConditionJoined) {
			t.Errorf("the cluster has not joined: %+v", w.cluster().Status)
		}
		if w.lease().Spec.RenewTime == nil {
			t.Error("the lease was not renewed")
		}
		if err := a.health.ready(); err != nil {
			t.Errorf("joined, it is not ready: %v", err)
		}
		if n := w.asked("bootstrap create managedclusters"); n != 1 {
			t.Errorf("the cluster was made %d times", n)
		}
		if events := w.events(); len(events) > 0 {
			t.Errorf("an ordinary join has events: %q", events)
		}
		stop()
	})
}

func TestJoin_TheRequestIsWhatTheHubApproves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.newAgent()
		a.identity = a.csrIdentity(3600)
		stop := start(t, a)
		pass(5 * time.Second)
		csrs := w.listCSRs()
		if len(csrs) != 1 {
			t.Fatalf("there are %d requests", len(csrs))
		}
		csr := csrs[0]
		if csr.GenerateName != "c1-" || csr.Labels[registration.ClusterNameLabel] != "c1" || csr.Spec.SignerName != registration.SignerName ||
			csr.Spec.ExpirationSeconds == nil || *csr.Spec.ExpirationSeconds != 3600 {
			t.Errorf("the request is %+v", csr)
		}
		if want := []certificatesv1.KeyUsage{"digital signature", "client auth"}; !slices.Equal(csr.Spec.Usages, want) {
			t.Errorf("its usages are %v", csr.Spec.Usages)
		}
		block, _ := pem.Decode(csr.Spec.Request)
		parsed, err := x509.ParseCertificateRequest(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		agentName := w.secret().agentName
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

func TestJoin_WaitsWithFewRequestsForAsLongAsItTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stop := start(t, w.newAgent())
		pass(12 * time.Hour)
		if n := w.asked("bootstrap"); n > 12*60*60/10 {
			t.Errorf("in 12 hours the hub was asked %d times", n)
		}
		w.accept()
		pass(time.Minute)
		if len(w.secret().cert) == 0 {
			t.Error("it did not join once it was accepted")
		}
		stop()
	})
}

func TestJoin_ARequestThatIsGoneIsMadeAgainForTheSameKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stop := start(t, w.newAgent())
		pass(5 * time.Second)
		key, first := w.secret().nextKey, w.secret().nextCSR
		if err := w.hubKube.Tracker().Delete(certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests"), "", first); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Minute)
		if s := w.secret(); s.nextCSR == first || s.nextCSR == "" || string(s.nextKey) != string(key) {
			t.Errorf("after %s came %q", first, s.nextCSR)
		}
		w.accept()
		pass(time.Minute)
		if string(w.secret().key) != string(key) {
			t.Error("the certificate is for another key")
		}
		stop()
	})
}

func TestJoin_ADeniedRequestIsNotMadeAgainAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stop := start(t, w.newAgent())
		pass(5 * time.Second)
		csr := w.listCSRs()[0]
		csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied, Message: "no"}}
		if err := w.hubKube.Tracker().Update(certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests"), &csr, ""); err != nil {
			t.Fatal(err)
		}
		pass(time.Hour)
		if n := len(w.listCSRs()); n != 1 {
			t.Errorf("there are %d requests", n)
		}
		stop()
	})
}

func TestJoin_ALostSecretIsSaidToNeedAnAdmin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, stop := w.joined()
		stop()
		lost := w.secret()
		if err := w.spoke.CoreV1().Secrets(namespace).Delete(t.Context(), registration.HubKubeconfigSecret, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		stop = start(t, w.newAgent())
		pass(10 * time.Second)
		s := w.secret()
		if string(s.nextKey) == string(lost.key) || s.nextCSR == "" {
			t.Error("it has not asked for a new key")
		}
		events := w.events()
		if len(events) != 1 || !strings.Contains(events[0], "approve certificate request "+s.nextCSR) {
			t.Errorf("the events are %q", events)
		}
		w.accept()
		pass(2 * time.Minute)
		if got := w.cluster().Annotations[registration.AnnotationAgentKey]; got != mustHash(t, lost.key) {
			t.Error("the agent has changed the key that the cluster was made with, which is the hub's to decide")
		}
		stop()
	})
}

func TestJoin_AnotherNameThanTheSecretsIsAMistake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, stop := w.joined()
		stop()
		a := w.newAgent()
		a.settings.clusterName = "other"
		err := a.run(quiet(t))
		if err == nil || !strings.Contains(err.Error(), "other") || !strings.Contains(err.Error(), "c1") || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v", err)
		}
	})
}

func TestJoin_TheNameIsTheFlagsOrTheSecretsOrTheClustersID(t *testing.T) {
	w := newWorld(t)
	a := w.newAgent()
	a.settings.clusterName = ""
	first, err := a.names(t.Context())
	if err != nil || first.clusterName != "uid-of-kube-system" || first.agentName == "" {
		t.Fatalf("got %q, %q, %v", first.clusterName, first.agentName, err)
	}
	again, err := w.newAgentNamed("").names(t.Context())
	if err != nil || again.clusterName != first.clusterName || again.agentName != first.agentName {
		t.Errorf("the second time got %q, %q, %v", again.clusterName, again.agentName, err)
	}
}

func (w *world) newAgentNamed(name string) *agent {
	a := w.newAgent()
	a.settings.clusterName = name
	return a
}

func TestJoin_AnAdminsClusterIsLeftAsItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		if err := w.hubClusters.Tracker().Add(&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: clusterName,
			Labels: map[string]string{"made": "by-admin"}}}); err != nil {
			t.Fatal(err)
		}
		stop := start(t, w.newAgent())
		pass(10 * time.Second)
		if c := w.cluster(); c.Labels["made"] != "by-admin" || len(c.Annotations) > 0 {
			t.Errorf("it became %+v", c)
		}
		if len(w.events()) != 1 {
			t.Errorf("the events are %q", w.events())
		}
		stop()
	})
}

func TestJoin_NoBootstrapKubeconfigIsSaidAndWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.newAgent()
		a.bootstrap = (&bootstrapSource{client: w.spoke, namespace: namespace}).read
		stop := start(t, a)
		pass(time.Minute)
		if err := a.health.ready(); err == nil || !strings.Contains(err.Error(), "bootstrap-hub-kubeconfig") {
			t.Errorf("its readiness is: %v", err)
		}
		if n := w.asked(""); n > 0 {
			t.Errorf("the hub was asked %d times", n)
		}
		stop()
	})
}

// An agent that was away for as long as its certificate was valid has a key that the hub knows, and needs another token.
func TestJoin_AnExpiredCertificateAndTokenAreSaidWithWhatToDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, stop := w.joined()
		stop()
		key := w.secret().key
		pass(400 * 24 * time.Hour)
		w.set(func() {
			w.refuse = func(user, _, _ string) error {
				if user == bootstrapUser {
					return apierrors.NewUnauthorized("the token has expired")
				}
				return nil
			}
		})
		a := w.newAgent()
		stop = start(t, a)
		pass(5 * time.Minute)
		want := []string{"the certificate has expired", "kubectl hub get token"}
		for _, text := range want {
			if err := a.health.ready(); err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("its readiness is %v, without %q", err, text)
			}
			if events := w.events(); len(events) != 1 || !strings.Contains(events[0], text) {
				t.Errorf("the events are %q, without one %q", events, text)
			}
		}
		w.set(func() { w.refuse = nil })
		pass(time.Minute)
		w.approve()
		pass(time.Minute)
		if string(w.secret().key) != string(key) || a.health.ready() != nil {
			t.Errorf("with another token it does not come back: %v", a.health.ready())
		}
		stop()
	})
}
