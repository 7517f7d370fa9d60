// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/klog/v2"
)

func TestHealth_ReportsWhatItWaitsFor(t *testing.T) {
	h := &Health{}
	ctx := klog.NewContext(t.Context(), klog.New(nil))
	server := httptest.NewServer(h.Handler())
	defer server.Close()
	get := func(path string) (int, string) {
		t.Helper()
		response, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(body)
	}
	h.Waiting("the hub to accept the cluster")
	if code, body := get("/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(body, "the hub to accept") {
		t.Errorf("got %d %q", code, body)
	}
	if code, _ := get("/healthz"); code != http.StatusOK {
		t.Errorf("got %d", code)
	}
	h.Renewed(time.Minute)
	if code, body := get("/readyz"); code != http.StatusOK {
		t.Errorf("got %d %q", code, body)
	}

	stop, err := Serve(ctx, "metrics", "127.0.0.1:0", Metrics())
	if err != nil {
		t.Fatal(err)
	}
	stop()
	stop, err = Serve(ctx, "none", "0", nil)
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if _, err := Serve(ctx, "bad", "no-port", nil); err == nil {
		t.Error("an address that is none is taken")
	}
}

// A process without a lease is ready until it waits for something.
func TestHealth_WithoutLease(t *testing.T) {
	h := &Health{}
	if h.Ready() == nil {
		t.Error("it is ready before anything is known")
	}
	h.Waiting("the hub")
	h.Good()
	if err := h.Ready(); err != nil {
		t.Error(err)
	}
	h.Waiting("the hub")
	if err := h.Ready(); err == nil || err.Error() != "waiting for: the hub" {
		t.Errorf("its readiness is %v", err)
	}
}
