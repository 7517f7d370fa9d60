// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/agent/agenttest"
	"github.com/clusterhub/clusterhub/pkg/agent/hub"
)

// whoAsks returns a server that rejects every request, and responds with the name of the client.
func whoAsks(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.UserAgent() != "a/b" {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"apiVersion":"v1","kind":"Status","status":"Failure","code":400,"message":%q}`, r.TLS.PeerCertificates[0].Subject.CommonName)
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12}
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

func TestRenewable_NextRequestUsesNextCertificate(t *testing.T) {
	server := whoAsks(t)
	// Without a scheme, only TLS implies https.
	config := &rest.Config{Host: strings.TrimPrefix(server.URL, "https://"), UserAgent: "a/b", Timeout: hub.RequestTimeout, QPS: -1}
	config.CAData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	config.CertData, config.KeyData = agenttest.Certificate(t, "first")
	way, certificate, err := hub.Renewable(config)
	if err != nil {
		t.Fatal(err)
	}
	h, err := hub.New(way)
	if err != nil {
		t.Fatal(err)
	}
	expect := func(want string) {
		t.Helper()
		_, one := h.Kube.CoreV1().Secrets("n").Get(t.Context(), "s", metav1.GetOptions{})
		_, two := h.Works.ManifestWorks("n").List(t.Context(), metav1.ListOptions{})
		for _, err := range []error{one, two} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("want %q, got %v", want, err)
			}
		}
	}
	expect("first")
	next, key := agenttest.Certificate(t, "second")
	if err := certificate.Renew(next, config.KeyData); err == nil {
		t.Error("a key of another certificate was taken")
	}
	expect("first")
	if err := certificate.Renew(next, key); err != nil {
		t.Fatal(err)
	}
	expect("second")
}

func TestRenewable_WithoutCertificate(t *testing.T) {
	config := &rest.Config{Host: "https://hub", BearerToken: "t"}
	way, certificate, err := hub.Renewable(config)
	if way != config || certificate != nil || err != nil {
		t.Errorf("got %v, %v, %v", way, certificate, err)
	}
	config.CertData, config.KeyData = []byte("s3cret"), []byte("s3cret")
	if _, _, err := hub.Renewable(config); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("got %v", err)
	}
}

type answers func(*http.Request) (*http.Response, error)

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }

func TestListen_ReportsOutcome(t *testing.T) {
	broken := errors.New("connection refused")
	for _, test := range []struct {
		method string
		code   int
		heard  bool
		is     func(error) bool
	}{
		{"GET", 200, true, func(err error) bool { return err == nil }},
		{"GET", 404, true, func(err error) bool { return err == nil }},
		{"GET", 401, true, apierrors.IsUnauthorized},
		{"PATCH", 401, true, apierrors.IsUnauthorized},
		{"GET", 403, true, apierrors.IsForbidden},
		{"GET", 429, true, apierrors.IsTooManyRequests},
		{"GET", 503, true, apierrors.IsServiceUnavailable},
		{"GET", 0, true, func(err error) bool { return errors.Is(err, broken) }},
		// A failed write of one work says nothing about the hub.
		{"PATCH", 403, false, nil}, {"PATCH", 200, false, nil}, {"PATCH", 0, false, nil},
	} {
		config := &rest.Config{}
		var heard []error
		hub.Listen(config, func(err error) { heard = append(heard, err) })
		way := config.WrapTransport(answers(func(*http.Request) (*http.Response, error) {
			if test.code == 0 {
				return nil, broken
			}
			return &http.Response{StatusCode: test.code, Body: io.NopCloser(strings.NewReader("body"))}, nil
		}))
		request := httptest.NewRequestWithContext(t.Context(), test.method, "/", nil)
		response, err := way.RoundTrip(request)
		if test.code == 0 != (err != nil) {
			t.Errorf("%s %d: %v", test.method, test.code, err)
		}
		if err == nil {
			if body, _ := io.ReadAll(response.Body); string(body) != "body" {
				t.Errorf("%s %d: the answer is %q", test.method, test.code, body)
			}
			_ = response.Body.Close()
		}
		if len(heard) > 1 || len(heard) == 1 != test.heard || test.heard && !test.is(heard[0]) {
			t.Errorf("%s %d: heard %v", test.method, test.code, heard)
		}
	}
}
