// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hubs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterhub/clusterhub/pkg/agent/repeat"
	"github.com/clusterhub/clusterhub/pkg/agent/state"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

const (
	// checkInterval is the interval of the checks whether to give the hub up. They send no requests.
	checkInterval = 5 * time.Second
	// tryFor is the time for which a hub that the agent has not worked with yet may fail to respond as expected. It doubles each time that all hubs have been
	// tried, up to maxTry: so hubs that are all down get few requests, and the state is not written all the time.
	tryFor = 45 * time.Second
	maxTry = 5 * time.Minute
	// refusedFor is the time for which the hub must hide the ManagedCluster until that counts as a refusal: it may happen for a moment while the hub starts, or
	// grants the agent its rights.
	refusedFor = time.Minute
	// settledAfter is the time for which a hub must be in use until it counts as working: a hub that accepts a lease renewal may refuse the cluster in its next
	// response.
	settledAfter = 30 * time.Second
	// maxText is the maximum length of a reason in an event, in bytes.
	maxText = 512
)

// cause is why a hub is given up: one of registration's reasons, and a text for people.
type cause struct{ reason, text string }

// patience is the state of the hub in use since begin.
type patience struct {
	began time.Time
	// before is the number of lease renewals at that time.
	before int
	// tried means that the agent has not worked with the hub yet. Such a hub is not given up before short has passed, whatever it responds: if all
	// hubs refuse the cluster, the agent must not switch between them all the time.
	tried bool
	// short is the time for which such a hub may fail to respond as expected, and long the time that it may take to accept the cluster. lost
	// is the time for which a working hub may fail to accept lease renewals: it differs between agents, so that they do not all switch to the next hub at once.
	short, long, lost time.Duration
	// answered is when the hub last responded that it must accept the cluster, and failed is the last error of joining.
	answered time.Time
	failed   error
	// refusal is how the hub refuses the agent, and since is when that started.
	refusal string
	since   time.Time
}

// begin resets the patience for the hub of a state.
func (h *Hubs) begin(s state.State) {
	h.mu.Lock()
	defer h.mu.Unlock()
	short := tryFor
	for _, g := range s.GivenUp {
		if g.Name == s.Hub {
			short = min(tryFor<<min(g.Times, 10), maxTry)
		}
	}
	before, _ := h.Health.Renewals()
	h.patience = patience{began: time.Now(), before: before, tried: len(s.GivenUp) > 0 || h.Usable(s) != nil,
		short: repeat.Jittered(short, h.Random), long: repeat.Jittered(h.Timeout, h.Random),
		lost: h.Timeout + h.Timeout - repeat.Jittered(h.Timeout, h.Random)}
}

// Joining is called after each step of joining, with nil if the hub responds and must accept the cluster.
func (h *Hubs) Joining(err error) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failed = err
	if err == nil {
		h.answered = time.Now()
	}
}

// Refused is called after each read of the ManagedCluster, with how the hub refuses the agent, or "".
func (h *Hubs) Refused(refusal string) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if refusal != h.refusal {
		h.refusal, h.since = refusal, time.Now()
	}
}

// works reports whether the agent can work with the hub.
func (h *Hubs) works() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	n, _ := h.Health.Renewals()
	if n == h.before || h.refusal != "" || time.Since(h.began) < settledAfter {
		return false
	}
	h.tried = false
	return true
}

// due returns why the agent must switch to the next hub now, or nil.
func (h *Hubs) due() *cause {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	renewals, last := h.Health.Renewals()
	if h.tried && now.Sub(h.began) < h.short {
		return nil
	}
	switch {
	case h.refusal == registration.RefusalNotAccepted:
		return &cause{h.refusal, "it no longer accepts the cluster"}
	case h.refusal == registration.RefusalNoCluster && now.Sub(h.since) >= refusedFor:
		return &cause{h.refusal, "it forbids the agent to get its ManagedCluster: the cluster was denied or deleted"}
	}
	if !h.tried || h.refusal == "" && renewals > h.before {
		if last.IsZero() {
			last = h.began // renewals before this process are not known
		}
		if now.Sub(last) < h.lost {
			return nil
		}
		return &cause{h.reason(), fmt.Sprintf("the lease has not been renewed for %s: %s", h.lost.Round(time.Second), h.text())}
	}
	last = h.began
	if h.answered.After(last) {
		last = h.answered
	}
	switch {
	case now.Sub(h.began) >= h.long:
		return &cause{registration.GivenUpNotAcceptedInTime, fmt.Sprintf("it has not accepted the cluster within %s", h.long.Round(time.Second))}
	case now.Sub(last) >= h.short:
		return &cause{h.reason(), h.text()}
	}
	return nil
}

// reason returns the reason for the last failure.
func (h *Hubs) reason() string {
	var unusable *unusableError
	refusal := h.Store.Get().Refusal
	switch {
	case refusal != "":
		return refusal
	case errors.As(h.failed, &unusable):
		return registration.GivenUpBootstrapKubeconfig
	case apierrors.IsUnauthorized(h.failed), apierrors.IsForbidden(h.failed):
		return registration.GivenUpBootstrapRefused
	}
	return registration.GivenUpNoAnswer
}

// text returns what the agent waits for.
func (h *Hubs) text() string {
	if h.failed != nil {
		return h.failed.Error()
	}
	if err := h.Health.Ready(); err != nil {
		return err.Error()
	}
	return "it does not respond"
}

func shorten(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText-3], "") + "..."
}

// RefusedIn returns a function that calls Refused, and records refusals in the state.
func (h *Hubs) RefusedIn(store *state.Store) func(context.Context, string) error {
	return func(ctx context.Context, refusal string) error {
		h.Refused(refusal)
		return store.Refused(ctx, refusal)
	}
}
