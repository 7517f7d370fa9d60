// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package health serves the agent's readiness and its metrics.
package health

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// Health is whether the cluster's lease is up to date, or works are brought by a process without a lease, and what the agent waits for.
type Health struct {
	mu      sync.Mutex
	waitsOn string
	// good says that all is well until something is waited for.
	good bool
	// goodUntil is when the hub will have missed a renewal of the lease, renewed is when it was renewed last, and renewals is how often.
	goodUntil, renewed time.Time
	renewals           int
}

// Waiting says what the agent waits for.
func (h *Health) Waiting(on string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waitsOn, h.good = on, false
}

// Renewed says that the lease has been renewed, and by when it has to be again.
func (h *Health) Renewed(interval time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waitsOn, h.renewed = "", time.Now()
	h.renewals++
	h.goodUntil = h.renewed.Add(2 * interval)
}

// Renewals returns how often this process has renewed a lease, and when it was last.
func (h *Health) Renewals() (n int, last time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.renewals, h.renewed
}

// Good says that all is well, until the agent waits for something. It is for a process that renews no lease.
func (h *Health) Good() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waitsOn, h.good = "", true
}

// Ready is nil while all is well, or the cluster's lease is up to date.
func (h *Health) Ready() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.good, time.Now().Before(h.goodUntil):
		return nil
	case h.waitsOn != "":
		return errors.New("waiting for: " + h.waitsOn)
	}
	return errors.New("the lease has not been renewed in time")
}

// Handler answers /healthz and /readyz.
func (h *Health) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "ok") })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := h.Ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprint(w, "ok")
	})
	return mux
}
