// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/restclient" // how long requests take, and how they end
	"k8s.io/klog/v2"
)

var (
	certificateExpires = metrics.NewGauge(&metrics.GaugeOpts{Namespace: "hub_agent", Name: "certificate_expiration_seconds",
		Help: "When the client certificate for the hub expires, in seconds since 1970.", StabilityLevel: metrics.ALPHA})
	leaseRenewals = metrics.NewCounter(&metrics.CounterOpts{Namespace: "hub_agent", Name: "lease_renewals_total",
		Help: "How often the cluster's lease has been renewed.", StabilityLevel: metrics.ALPHA})
)

func init() { legacyregistry.MustRegister(certificateExpires, leaseRenewals) }

// health is what the agent tells those who look after its process.
type health struct {
	mu      sync.Mutex
	waitsOn string
	// goodUntil is when the hub will have missed a renewal of the lease.
	goodUntil time.Time
}

// waiting says what the agent waits for.
func (h *health) waiting(on string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waitsOn = on
}

// renewed says that the lease has been renewed, and by when it has to be again.
func (h *health) renewed(interval time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waitsOn, h.goodUntil = "", time.Now().Add(2*interval)
}

// ready is nil while the cluster's lease is up to date.
func (h *health) ready() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case time.Now().Before(h.goodUntil):
		return nil
	case h.waitsOn != "":
		return errors.New("waiting for: " + h.waitsOn)
	}
	return errors.New("the lease has not been renewed in time")
}

func (h *health) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "ok") })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := h.ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprint(w, "ok")
	})
	return mux
}

func metricsHandler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", legacyregistry.Handler())
	return mux
}

// serve answers at an address, plain HTTP, until stop is called; the address "0" is none.
func serve(ctx context.Context, what, address string, handler http.Handler) (stop func(), err error) {
	if address == "0" {
		return func() {}, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	klog.FromContext(ctx).Info("Listening", "for", what, "address", listener.Addr().String())
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			klog.FromContext(ctx).Error(err, "Not listening any more", "for", what)
		}
	}()
	return func() {
		_ = server.Close()
		<-ended
	}, nil
}
