// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"crypto/x509"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes/fake"
)

// partialCA is the content that has been loaded so far.
type partialCA struct{ content string }

func (p *partialCA) Name() string                                      { return "partial" }
func (p *partialCA) CurrentCABundleContent() []byte                    { return []byte(p.content) }
func (p *partialCA) VerifyOptions() (x509.VerifyOptions, bool)         { return x509.VerifyOptions{}, true }
func (p *partialCA) AddListener(listener dynamiccertificates.Listener) {}

type counter struct{ atomic.Int32 }

func (c *counter) Enqueue() { c.Add(1) }

func heldBack(t *testing.T, data map[string]string, ca *partialCA, headers *[]string) *completeCA {
	t.Helper()
	hub := fake.NewClientset(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: authenticationNamespace, Name: authenticationConfigMap}, Data: data,
	})
	config := &genericapiserver.Config{SecureServing: &genericapiserver.SecureServingInfo{ClientCA: ca}}
	config.Authentication.RequestHeaderConfig = &authenticatorfactory.RequestHeaderConfig{
		UsernameHeaders: headerrequest.StringSliceProviderFunc(func() []string { return *headers }),
	}
	if err := holdBackClientCA(t.Context(), hub, config); err != nil {
		t.Fatal(err)
	}
	return config.SecureServing.ClientCA.(*completeCA)
}

var both = map[string]string{"client-ca-file": "USERS\n", "requestheader-client-ca-file": "FRONT\n"}

func TestClientCA_IsHeldBackUntilComplete(t *testing.T) {
	loaded, headers := &partialCA{}, []string{}
	ca := heldBack(t, both, loaded, &headers)
	for _, step := range []struct {
		content string
		headers []string
		want    string
	}{
		{"", nil, ""},
		{"FRONT", []string{"X-Remote-User"}, ""},
		{"USERS", []string{"X-Remote-User"}, ""},
		{"USERS\nFRONT", nil, ""},
		{"USERS\nFRONT", []string{"X-Remote-User"}, "USERS\nFRONT"},
		// Once complete, a rotation is used immediately.
		{"NEW\nFRONT", []string{"X-Remote-User"}, "NEW\nFRONT"},
	} {
		loaded.content, headers = step.content, step.headers
		_, ok := ca.VerifyOptions()
		if got := string(ca.CurrentCABundleContent()); got != step.want || ok != (step.want != "") {
			t.Errorf("with %q and %v: got %q, %t, want %q", step.content, step.headers, got, ok, step.want)
		}
	}
}

func TestClientCA_IsNotHeldBackWhenUnpublished(t *testing.T) {
	headers := []string{}
	ca := heldBack(t, map[string]string{"client-ca-file": "USERS"}, &partialCA{content: "USERS"}, &headers)
	if got := string(ca.CurrentCABundleContent()); got != "USERS" {
		t.Errorf("got %q", got)
	}
}

func TestClientCA_ListenersAreNotifiedEventually(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		headers := []string{}
		ca := heldBack(t, both, &partialCA{content: "USERS"}, &headers)
		told := &counter{}
		ca.AddListener(told)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go ca.Run(ctx, 1)
		time.Sleep(caTimeout / 2)
		synctest.Wait()
		if told.Load() != 0 || len(ca.CurrentCABundleContent()) != 0 {
			t.Fatal("an incomplete CA has been given out early")
		}
		time.Sleep(caTimeout)
		synctest.Wait()
		if told.Load() != 1 || string(ca.CurrentCABundleContent()) != "USERS" {
			t.Errorf("told %d times of %q", told.Load(), ca.CurrentCABundleContent())
		}
	})
}

func TestCertificate_IsPublishedWithClientCAs(t *testing.T) {
	loaded, headers := &partialCA{content: "USERS"}, []string{"X-Remote-User"}
	hub := fake.NewClientset(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: authenticationNamespace, Name: authenticationConfigMap}, Data: both,
	})
	config := &genericapiserver.Config{SecureServing: &genericapiserver.SecureServingInfo{ClientCA: loaded, Cert: ownCertificate{}}}
	config.Authentication.RequestHeaderConfig = &authenticatorfactory.RequestHeaderConfig{
		UsernameHeaders: headerrequest.StringSliceProviderFunc(func() []string { return headers }),
	}
	if err := holdBackClientCA(t.Context(), hub, config); err != nil {
		t.Fatal(err)
	}
	// Without a certificate, handshakes fail.
	if cert, key := config.SecureServing.Cert.CurrentCertKeyContent(); len(cert) != 0 || len(key) != 0 {
		t.Errorf("with a part of the client CAs: %q, %q", cert, key)
	}
	loaded.content = "USERS FRONT"
	if cert, key := config.SecureServing.Cert.CurrentCertKeyContent(); string(cert) != "CERT" || string(key) != "KEY" {
		t.Errorf("with all of the client CAs: %q, %q", cert, key)
	}
}

type ownCertificate struct{}

func (ownCertificate) Name() string                             { return "own" }
func (ownCertificate) AddListener(dynamiccertificates.Listener) {}
func (ownCertificate) CurrentCertKeyContent() (cert, key []byte) {
	return []byte("CERT"), []byte("KEY")
}
