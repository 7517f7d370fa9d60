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

// Health holds whether the cluster's lease is up to date, or a process without a lease applies works, and what the agent waits for.
type Health struct {
	mu      sync.Mutex
	waitsOn string
	// good means that the agent is ready until it waits for something.
	good bool
	// goodUntil is when the hub will have missed a renewal of the lease, renewed is the time of the last renewal, and renewals their number.
	goodUntil, renewed time.Time
	renewals           int
}

// Waiting sets what the agent waits for.
func (h *Health) Waiting(on string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waitsOn, h.good = on, false
}

// Renewed records that the lease was renewed. interval is the time until the next renewal.
func (h *Health) Renewed(interval time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waitsOn, h.renewed = "", time.Now()
	h.renewals++
	h.goodUntil = h.renewed.Add(2 * interval)
}

// Renewals returns the number of lease renewals of this process, and the time of the last.
func (h *Health) Renewals() (n int, last time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.renewals, h.renewed
}

// Good marks the agent as ready until it waits for something. It is for a process that renews no lease.
func (h *Health) Good() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waitsOn, h.good = "", true
}

// Ready returns nil if the agent is marked as ready or the cluster's lease is up to date, and otherwise what the agent waits for.
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

// Handler serves /healthz and /readyz.
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
