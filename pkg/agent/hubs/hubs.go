// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hubs chooses the hub of an agent that has the bootstrap kubeconfigs of several. The agent works with one hub at a time: the first that
// responds and accepts the cluster. It stays with that hub until the hub does not respond for a while, or refuses the cluster; then it tries the next
// one. It does not return to a hub that recovers, unless the current one fails.
//
// The hub in use, and the hubs that were given up, are written to the state before the agent acts on it. So an agent that is killed at any line
// continues with the same hub.
package hubs

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"

	"github.com/clusterhub/clusterhub/pkg/agent/health"
	"github.com/clusterhub/clusterhub/pkg/agent/hub"
	"github.com/clusterhub/clusterhub/pkg/agent/repeat"
	"github.com/clusterhub/clusterhub/pkg/agent/state"
	"github.com/clusterhub/clusterhub/pkg/apis/bounds"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// Hubs chooses among the hubs that an agent may join. An agent with one hub has a nil *Hubs, and never gives its hub up.
type Hubs struct {
	// Candidates are in the order in which they are tried.
	Candidates []Candidate
	// Timeout is the time for which lease renewals may fail, and the time that a hub may take to accept a cluster.
	Timeout time.Duration
	Store   *state.Store
	Health  *health.Health
	// Usable returns why the identity of a state cannot be used, or nil.
	Usable func(state.State) error
	// Tell records an event for an admin of the agent.
	Tell func(ctx context.Context, eventType, reason, message string)
	// Random returns a number in [0, 1), for jitter.
	Random func() float64

	mu sync.Mutex
	patience
	said repeat.Said
}

// Serve runs serve for the hub in use until the context ends. When the hub is given up, the context of serve ends, and serve is run for the next hub.
func (h *Hubs) Serve(ctx context.Context, serve func(context.Context)) {
	for ctx.Err() == nil {
		h.persist(ctx, "selecting the hub to use", h.reconcile)
		s := h.Store.Get()
		named := klog.NewContext(ctx, klog.FromContext(ctx).WithValues("hub", s.Hub))
		if why := h.try(named, s, serve); why != nil {
			h.persist(ctx, "giving a hub up", func(ctx context.Context) error { return h.giveUp(ctx, s.Hub, *why) })
		}
	}
}

// persist retries a function until it succeeds, as the state may not be writable at the moment.
func (h *Hubs) persist(ctx context.Context, what string, do func(context.Context) error) {
	retry := repeat.Backoff{Shortest: time.Second, Longest: 15 * time.Second, Random: h.Random}
	for ctx.Err() == nil {
		err := do(ctx)
		h.said.Result(ctx, what, err)
		if err == nil || !repeat.Sleep(ctx, retry.Next()) {
			return
		}
	}
}

// try runs serve until the context ends or the hub must be given up, and returns why.
func (h *Hubs) try(ctx context.Context, s state.State, serve func(context.Context)) (why *cause) {
	h.begin(s)
	ctx, end := context.WithCancel(ctx)
	defer end()
	var watching sync.WaitGroup
	watching.Go(func() {
		why = h.watch(ctx)
		end()
	})
	serve(ctx)
	end()
	watching.Wait()
	return why
}

// watch returns why the hub must be given up, or nil when the context ends.
func (h *Hubs) watch(ctx context.Context) *cause {
	for repeat.Sleep(ctx, checkInterval) {
		if why := h.due(); why != nil {
			return why
		}
		if s := h.Store.Get(); h.works() && len(s.GivenUp) > 0 {
			_, err := h.Store.Update(ctx, func(s *state.State) { s.GivenUp = nil })
			h.said.Result(ctx, "recording that the hub works", err)
			if err == nil {
				h.Tell(ctx, corev1.EventTypeNormal, "HubInUse", fmt.Sprintf("The cluster now uses the hub of the bootstrap kubeconfig %s", s.Hub))
			}
		}
	}
	return nil
}

// Bootstrap reads the bootstrap kubeconfig of the hub in use.
func (h *Hubs) Bootstrap(context.Context) (*clientcmdapi.Config, error) {
	name := h.Store.Get().Hub
	for _, c := range h.Candidates {
		if c.Name == name {
			return c.Read()
		}
	}
	return nil, &unusableError{"no bootstrap kubeconfig is for the hub in use"}
}

// reconcile adapts the state to the candidates: the agent may have had one hub before, or different ones.
func (h *Hubs) reconcile(ctx context.Context) error {
	s := h.Store.Get()
	switch {
	case h.listed(s.Hub):
		return nil
	case s.Hub != "":
		return h.giveUp(ctx, s.Hub, cause{registration.GivenUpNotListed, "it is no longer among the bootstrap kubeconfigs"})
	case len(s.Kubeconfig) == 0:
		return h.use(ctx, h.Candidates[0].Name)
	}
	url, err := hub.URL(s.Kubeconfig)
	known := err == nil
	for _, c := range h.Candidates {
		switch c.server() {
		case "":
			known = false // it may be this one
		case url:
			return h.use(ctx, c.Name)
		}
	}
	if !known {
		return nil // the identity is used as long as it is valid
	}
	return h.giveUp(ctx, "", cause{registration.GivenUpNotListed, "no bootstrap kubeconfig is for the hub at " + url})
}

// listed reports whether a candidate has the name.
func (h *Hubs) listed(name string) bool {
	return slices.ContainsFunc(h.Candidates, func(c Candidate) bool { return c.Name == name })
}

// use records that the identity of the state is for the hub of a candidate.
func (h *Hubs) use(ctx context.Context, name string) error {
	_, err := h.Store.Update(ctx, func(s *state.State) { s.Hub = name })
	return err
}

// giveUp switches to the next hub, in one write of the state.
func (h *Hubs) giveUp(ctx context.Context, name string, why cause) error {
	s, err := h.Store.Update(ctx, func(s *state.State) {
		if s.Hub != name {
			return // another process was faster
		}
		if h.listed(name) {
			s.GivenUp = append(s.GivenUp, registration.GivenUpHub{Name: name, Reason: why.reason, Time: metav1.Now()})
		}
		s.GivenUp = h.merge(s.GivenUp)
		s.SwitchTo(h.next(s.GivenUp))
		for other := range s.Others {
			if !h.listed(other) {
				delete(s.Others, other) // it has a private key, and is not used again
			}
		}
	})
	if err != nil {
		return err
	}
	log := klog.FromContext(ctx)
	log.Info("Giving the hub up", "hub", name, "reason", why.reason, "because", why.text, "next", s.Hub)
	if h.said.Again("giving up "+name, why.reason) {
		if name == "" {
			name = "in use"
		}
		text := fmt.Sprintf("The hub %s is given up (%s): %s. The agent switches to the hub of the bootstrap kubeconfig %s",
			name, why.reason, bounds.Plain(shorten(why.text)), s.Hub)
		h.Tell(ctx, corev1.EventTypeWarning, "HubGivenUp", text)
	}
	return nil
}

// merge returns one entry for each listed hub, in the order in which the hubs were last given up.
func (h *Hubs) merge(all []registration.GivenUpHub) (merged []registration.GivenUpHub) {
	times := map[string]int{}
	for _, g := range all {
		times[g.Name] += max(g.Times, 1)
	}
	for i, g := range all {
		again := slices.ContainsFunc(all[i+1:], func(later registration.GivenUpHub) bool { return later.Name == g.Name })
		if again || !h.listed(g.Name) {
			continue
		}
		g.Times = times[g.Name]
		merged = append(merged, g)
	}
	return merged
}

// next returns the first candidate that was not given up since the agent last worked with a hub, or else the one that was given up first.
func (h *Hubs) next(givenUp []registration.GivenUpHub) string {
	for _, c := range h.Candidates {
		if !slices.ContainsFunc(givenUp, func(g registration.GivenUpHub) bool { return g.Name == c.Name }) {
			return c.Name
		}
	}
	return givenUp[0].Name
}

// Forget removes the state of several hubs, for an agent that now has one. If there is an identity for this hub, it is used.
func Forget(ctx context.Context, store *state.Store, read func(context.Context) (*clientcmdapi.Config, error)) error {
	s := store.Get()
	if s.Hub == "" && len(s.Others) == 0 && len(s.GivenUp) == 0 {
		return nil
	}
	only := ""
	if config, err := read(ctx); err == nil {
		only = serverOf(config)
	}
	_, err := store.Update(ctx, func(s *state.State) {
		if url, err := hub.URL(s.Kubeconfig); only != "" && (err != nil || url != only) {
			for name, other := range s.Others {
				if url, err := hub.URL(other.Kubeconfig); err == nil && url == only {
					s.SwitchTo(name)
					break
				}
			}
		}
		s.Hub, s.Others, s.GivenUp = "", nil, nil
	})
	return err
}
