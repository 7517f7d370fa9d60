// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	clienttesting "k8s.io/client-go/testing"
)

func TestNew_ReplicasShareCA(t *testing.T) {
	kube := newKubernetes()
	const replicas = 8
	gate := &sync.WaitGroup{}
	gate.Add(replicas) // all have found that the Secret does not exist before one creates it
	managers := make([]*Manager, replicas)
	var wg sync.WaitGroup
	for i := range replicas {
		wg.Go(func() {
			m, err := New(t.Context(), testConfig(gatedKubernetes{kube, gate}, nil, newClock()))
			if err != nil {
				t.Error(err)
			}
			managers[i] = m
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	creates := 0
	for _, action := range kube.Actions() {
		if action.GetVerb() == "create" {
			creates++
		}
	}
	if creates != replicas {
		t.Fatalf("%d replicas tried to create the Secret, want all %d: the race was not tried", creates, replicas)
	}
	for i, m := range managers {
		if !bytes.Equal(m.CABundle(), getSecret(t, kube).Data[keyBundle]) {
			t.Errorf("replica %d has another bundle than the Secret", i)
		}
		if err := handshake(t, m, managers[0].CABundle(), testHost, begin); err != nil {
			t.Errorf("replica %d: %v", i, err)
		}
	}
	_, first := managers[0].CurrentCertKeyContent()
	if _, second := managers[1].CurrentCertKeyContent(); bytes.Equal(first, second) {
		t.Error("two replicas serve with the same private key")
	}
}

func TestCertificate_NamesServiceOnly(t *testing.T) {
	m := mustNew(t.Context(), t, testConfig(newKubernetes(), nil, newClock()))
	for name, accepted := range map[string]bool{
		testHost:                    true,
		testHost + ".cluster.local": true,
		"localhost":                 true,
		"127.0.0.1":                 true,
		"hub-apiserver.other.svc":   false,
		"kubernetes.default.svc":    false,
	} {
		if err := handshake(t, m, m.CABundle(), name, begin); (err == nil) != accepted {
			t.Errorf("server name %s: %v, want accepted %v", name, err, accepted)
		}
	}
	other := mustNew(t.Context(), t, testConfig(newKubernetes(), nil, newClock()))
	if err := handshake(t, m, other.CABundle(), testHost, begin); err == nil {
		t.Error("a client with another CA accepts the certificate")
	}
	certPEM, _ := m.CurrentCertKeyContent()
	certs, err := parseCertificates(certPEM)
	if err != nil {
		t.Fatal(err)
	}
	if certs[0].IsCA || certs[0].KeyUsage&x509.KeyUsageCertSign != 0 || len(certs[0].ExtKeyUsage) != 1 {
		t.Error("the serving certificate can do more than serve")
	}
}

// The listener is k8s.io/apiserver's own, as in a running server.
func TestRun_RenewsAtTwoThirds(t *testing.T) {
	clock := newClock()
	m := mustNew(t.Context(), t, testConfig(newKubernetes(), nil, clock))
	controller := dynamiccertificates.NewDynamicServingCertificateController(&tls.Config{}, nil, m, nil, nil)
	m.AddListener(controller)
	if err := controller.RunOnce(); err != nil {
		t.Fatal(err)
	}
	go controller.Run(1, t.Context().Done())
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{GetConfigForClient: controller.GetConfigForClient})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.(*tls.Conn).HandshakeContext(t.Context())
			_ = conn.Close()
		}
	}()
	go m.Run(t.Context())
	served := func() *x509.Certificate {
		cert, err := dial(listener.Addr(), m.CABundle(), testHost, clock.Now())
		if err != nil {
			t.Fatal(err)
		}
		return cert
	}

	first := served()
	if got, want := first.NotAfter, begin.Add(90*24*time.Hour).Truncate(time.Second); !got.Equal(want) {
		t.Errorf("the certificate ends %s, want %s", got, want)
	}
	step := func(to time.Duration) {
		eventually(t, "the rotation waits for its next turn", clock.HasWaiters)
		clock.SetTime(begin.Add(to))
	}
	step(60*24*time.Hour - 10*time.Minute)
	eventually(t, "the rotation has had its turn", clock.HasWaiters)
	if got := served(); !got.Equal(first) {
		t.Fatal("renewed before two thirds of its life")
	}
	step(60*24*time.Hour + time.Minute)
	eventually(t, "a new certificate is served", func() bool { return !served().Equal(first) })
	step(120 * 24 * time.Hour) // beyond the expiry of the first
	eventually(t, "the certificate is renewed again", func() bool {
		_, err := dial(listener.Addr(), m.CABundle(), testHost, clock.Now())
		return err == nil
	})
}

func TestRotation_CAIsPublishedBeforeUse(t *testing.T) {
	kube, clock := newKubernetes(), newClock()
	gate := &sync.WaitGroup{}
	a := mustNew(t.Context(), t, testConfig(kube, nil, clock))
	b := mustNew(t.Context(), t, testConfig(kube, nil, clock))
	oldCA, oldBundle := signedBy(t, a), a.CABundle()
	rotateAt := oldCA.NotAfter.Add(-oldCA.NotAfter.Sub(oldCA.NotBefore) / 5)

	clock.SetTime(rotateAt.Add(-time.Minute))
	mustSync(t.Context(), t, a, b)
	if !bytes.Equal(a.CABundle(), oldBundle) {
		t.Fatal("the CA is rotated with more than 20 % of its life left")
	}

	// Both find it due at the same time.
	clock.SetTime(rotateAt.Add(time.Minute))
	gate.Add(2)
	var wg sync.WaitGroup
	for _, m := range []*Manager{a, b} {
		m.store.secrets = gatedKubernetes{kube, gate}.CoreV1().Secrets(testNamespace)
		wg.Go(func() {
			if _, err := m.sync(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	published := a.CABundle()
	if certs := bundleOf(t, a); len(certs) != 2 || !certs[0].Equal(oldCA) || !bytes.Equal(published, b.CABundle()) {
		t.Fatalf("the replicas publish %d CAs, want the old one and the same new one", len(certs))
	}
	newCA := bundleOf(t, a)[1]
	if from := getSecret(t, kube).Annotations[annotationNextFrom]; from != clock.Now().Add(time.Hour).UTC().Format(time.RFC3339) {
		t.Errorf("the new CA signs from %q", from)
	}

	clock.SetTime(clock.Now().Add(59 * time.Minute))
	mustSync(t.Context(), t, a, b)
	for _, m := range []*Manager{a, b} {
		if !signedBy(t, m).Equal(oldCA) {
			t.Error("the new CA signs within the hour")
		}
		if err := handshake(t, m, oldBundle, testHost, clock.Now()); err != nil {
			t.Errorf("a client that has not seen the new bundle yet: %v", err)
		}
	}

	clock.SetTime(clock.Now().Add(2 * time.Minute))
	mustSync(t.Context(), t, a)
	// b has not read it yet: clients with the published bundle accept both.
	for _, m := range []*Manager{a, b} {
		if err := handshake(t, m, published, testHost, clock.Now()); err != nil {
			t.Error(err)
		}
	}
	mustSync(t.Context(), t, b)
	for _, m := range []*Manager{a, b} {
		if !signedBy(t, m).Equal(newCA) {
			t.Error("the new CA does not sign after the hour")
		}
		if err := handshake(t, m, oldBundle, testHost, clock.Now()); err == nil {
			t.Error("the old CA still verifies the new certificate")
		}
	}
	secret := getSecret(t, kube)
	if secret.Data[keyNextCert] != nil || secret.Data[keyNextKey] != nil || secret.Annotations[annotationNextFrom] != "" {
		t.Error("the finished rotation left its parts in the Secret")
	}

	clock.SetTime(oldCA.NotAfter.Add(time.Minute))
	mustSync(t.Context(), t, a, b)
	if certs := bundleOf(t, b); len(certs) != 1 || !certs[0].Equal(newCA) {
		t.Error("the bundle keeps a CA that has ended")
	}
}

func TestRotation_CompletesWithoutSecret(t *testing.T) {
	kube, clock := newKubernetes(), newClock()
	m := mustNew(t.Context(), t, testConfig(kube, nil, clock))
	oldCA := signedBy(t, m)
	clock.SetTime(m.content.current.rotateAt())
	mustSync(t.Context(), t, m)
	kube.PrependReactor("*", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("connection refused")
	})
	clock.SetTime(clock.Now().Add(2 * time.Hour))
	if _, err := m.sync(t.Context()); err == nil {
		t.Error("the failure is not reported")
	}
	if signedBy(t, m).Equal(oldCA) {
		t.Error("still signed by the old CA")
	}
}

func TestRotation_ExpiredCAIsReplaced(t *testing.T) {
	kube, clock := newKubernetes(), newClock()
	m := mustNew(t.Context(), t, testConfig(kube, nil, clock))
	oldCA := signedBy(t, m)
	clock.SetTime(oldCA.NotAfter.Add(24 * time.Hour)) // a hub that was off for years
	restarted := mustNew(t.Context(), t, testConfig(kube, nil, clock))
	if err := handshake(t, restarted, restarted.CABundle(), testHost, clock.Now()); err != nil {
		t.Error(err)
	}
	if len(bundleOf(t, restarted)) != 1 || signedBy(t, restarted).Equal(oldCA) {
		t.Error("the ended CA is still in use")
	}
}

func TestRotation_PreservesOtherKeysOfSecret(t *testing.T) {
	kube, clock := newKubernetes(), newClock()
	m := mustNew(t.Context(), t, testConfig(kube, nil, clock))
	secret := getSecret(t, kube)
	secret.Data["note"] = []byte("kept")
	if _, err := kube.CoreV1().Secrets(testNamespace).Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	clock.SetTime(m.content.current.rotateAt())
	mustSync(t.Context(), t, m)
	if got := getSecret(t, kube); string(got.Data["note"]) != "kept" || got.Data[keyNextCert] == nil {
		t.Errorf("after a rotation the Secret has %d keys", len(got.Data))
	}
}

func TestSync_DeletedSecretCreatesSingleCA(t *testing.T) {
	kube, clock := newKubernetes(), newClock()
	a := mustNew(t.Context(), t, testConfig(kube, nil, clock))
	b := mustNew(t.Context(), t, testConfig(kube, nil, clock))
	oldCA := signedBy(t, a)
	if err := kube.CoreV1().Secrets(testNamespace).Delete(t.Context(), SecretName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	mustSync(t.Context(), t, a, b)
	if !bytes.Equal(a.CABundle(), b.CABundle()) || len(bundleOf(t, a)) != 1 || bundleOf(t, a)[0].Equal(oldCA) {
		t.Error("the replicas do not agree on one new CA")
	}
	for _, m := range []*Manager{a, b} {
		if err := handshake(t, m, a.CABundle(), testHost, clock.Now()); err != nil {
			t.Error(err)
		}
	}
	if got := getSecret(t, kube).Type; got != corev1.SecretTypeTLS {
		t.Errorf("the Secret has type %s", got)
	}
}
