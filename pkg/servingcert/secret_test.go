// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
)

// badSecrets are the ways in which a valid Secret can be corrupted.
func badSecrets(t *testing.T) map[string]func(*corev1.Secret) {
	t.Helper()
	other, err := newAuthority(begin)
	if err != nil {
		t.Fatal(err)
	}
	otherKey, err := other.keyPEM()
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := other.issue([]string{"x"}, begin)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]func(*corev1.Secret){
		"made by someone else":     func(s *corev1.Secret) { s.Labels = nil },
		"no data":                  func(s *corev1.Secret) { s.Data = nil },
		"certificate is no PEM":    func(s *corev1.Secret) { s.Data[keyCert] = []byte("hello") },
		"certificate is cut off":   func(s *corev1.Secret) { s.Data[keyCert] = s.Data[keyCert][:100] },
		"two certificates":         func(s *corev1.Secret) { s.Data[keyCert] = append(s.Data[keyCert], s.Data[keyCert]...) },
		"key of another CA":        func(s *corev1.Secret) { s.Data[keyKey] = otherKey },
		"key is cut off":           func(s *corev1.Secret) { s.Data[keyKey] = s.Data[keyKey][:120] },
		"key where the cert goes":  func(s *corev1.Secret) { s.Data[keyCert] = s.Data[keyKey] },
		"no CA":                    func(s *corev1.Secret) { s.Data[keyCert], s.Data[keyKey] = leaf.certPEM, leaf.keyPEM },
		"no bundle":                func(s *corev1.Secret) { delete(s.Data, keyBundle) },
		"bundle is no PEM":         func(s *corev1.Secret) { s.Data[keyBundle] = []byte("hello") },
		"key in the bundle":        func(s *corev1.Secret) { s.Data[keyBundle] = append(s.Data[keyBundle], s.Data[keyKey]...) },
		"next CA without its key":  func(s *corev1.Secret) { s.Data[keyNextCert] = s.Data[keyCert] },
		"next CA without its time": func(s *corev1.Secret) { s.Data[keyNextCert], s.Data[keyNextKey] = s.Data[keyCert], s.Data[keyKey] },
	}
}

func goodSecret(t *testing.T) *corev1.Secret {
	t.Helper()
	c, err := newContent(begin)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := newSecret(testNamespace, c)
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

func TestNew_InvalidSecretIsAnError(t *testing.T) {
	if _, err := decode(goodSecret(t)); err != nil {
		t.Fatalf("the Secret to spoil is bad already: %v", err)
	}
	for name, spoil := range badSecrets(t) {
		t.Run(name, func(t *testing.T) {
			secret := goodSecret(t)
			key := secret.Data[keyKey]
			spoil(secret)
			kube := newKubernetes(secret)
			ctx, log := withLog(t.Context())
			_, err := New(ctx, testConfig(kube, nil, newClock()))
			if !errors.Is(err, ErrInvalidSecret) {
				t.Fatalf("error %v, want ErrInvalidSecret", err)
			}
			for _, part := range []string{"hub/hub-apiserver-serving-ca", "delete it", "--tls-cert-file"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not tell %q", err, part)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q has more than one line", err)
			}
			if leaks(err.Error()+log.String(), key) || leaks(err.Error()+log.String(), secret.Data[keyKey]) {
				t.Error("the private key is in the error or the log")
			}
			for _, action := range kube.Actions() {
				if action.GetVerb() != "get" {
					t.Errorf("%s of the Secret", action.GetVerb())
				}
			}
		})
	}
}

func TestRun_InvalidSecretDoesNotStopServing(t *testing.T) {
	kube, clock := newKubernetes(), newClock()
	ctx, log := withLog(t.Context())
	ctx, cancel := context.WithCancel(ctx)
	m := mustNew(ctx, t, testConfig(kube, nil, clock))
	good := getSecret(t, kube)
	bad := good.DeepCopy()
	bad.Data[keyCert] = []byte("hello")
	gvr := corev1.SchemeGroupVersion.WithResource("secrets")
	if err := kube.Tracker().Update(gvr, bad, testNamespace); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); m.Run(ctx) }()
	eventually(t, "the rotation waits", clock.HasWaiters)
	clock.SetTime(begin.Add(61 * 24 * time.Hour)) // the certificate is due, too
	eventually(t, "the problem is logged", func() bool { return strings.Contains(log.String(), "hub/hub-apiserver-serving-ca") })
	if err := handshake(t, m, good.Data[keyBundle], testHost, begin.Add(95*24*time.Hour)); err != nil {
		t.Errorf("the certificate was not renewed with the CA that is known: %v", err)
	}

	if err := kube.Tracker().Update(gvr, good, testNamespace); err != nil {
		t.Fatal(err)
	}
	// One retry later, there is no error: the next wait is the long one.
	eventually(t, "the rotation waits", clock.HasWaiters)
	clock.Step(maxRetry)
	eventually(t, "the rotation waits", clock.HasWaiters)
	if _, err := m.sync(ctx); err != nil {
		t.Errorf("after the repair: %v", err)
	}
	cancel()
	<-done
	_, leafKey := m.CurrentCertKeyContent()
	if leaks(log.String(), good.Data[keyKey]) || leaks(log.String(), leafKey) {
		t.Error("a private key is in the log")
	}
}

func TestNew_WaitsForKubeAPIServer(t *testing.T) {
	kube := newKubernetes()
	failures := 2
	kube.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		if failures > 0 {
			failures--
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, SecretName, errors.New("no RBAC yet"))
		}
		return false, nil, nil
	})
	clock := newClock()
	type result struct {
		m   *Manager
		err error
	}
	got := make(chan result, 1)
	go func() {
		m, err := New(t.Context(), testConfig(kube, nil, clock))
		got <- result{m, err}
	}()
	for range 2 {
		eventually(t, "New waits to try again", clock.HasWaiters)
		clock.Step(maxRetry)
	}
	if r := <-got; r.err != nil || r.m == nil {
		t.Fatal(r.err)
	}
}

func TestNew_TimeoutReportsMissing(t *testing.T) {
	kube := newKubernetes()
	ctx, cancel := context.WithCancel(t.Context())
	kube.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		cancel()
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, SecretName, errors.New("no"))
	})
	_, err := New(ctx, testConfig(kube, nil, newClock()))
	if err == nil || !strings.Contains(err.Error(), "Role") || !strings.Contains(err.Error(), "hub/hub-apiserver-serving-ca") {
		t.Errorf("error %v does not tell what to do", err)
	}
}

func TestSync_ForbiddenRotationContinuesServing(t *testing.T) {
	kube, clock := newKubernetes(), newClock()
	m := mustNew(t.Context(), t, testConfig(kube, nil, clock))
	kube.PrependReactor("update", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, SecretName, errors.New("no"))
	})
	clock.SetTime(m.content.current.rotateAt())
	fresh, err := m.sync(t.Context())
	if !fresh || !apierrors.IsForbidden(err) {
		t.Errorf("fresh %v, error %v, want the Secret read and a 403", fresh, err)
	}
	restarted, err := New(t.Context(), testConfig(kube, nil, clock))
	if err != nil {
		t.Fatalf("a restart fails, too: %v", err)
	}
	if err := handshake(t, restarted, restarted.CABundle(), testHost, clock.Now()); err != nil {
		t.Error(err)
	}
}
