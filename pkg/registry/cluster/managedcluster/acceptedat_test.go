// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package managedcluster

import (
	"testing"
	"time"

	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/clusterhub/clusterhub/pkg/apis/cluster"
	"github.com/clusterhub/clusterhub/pkg/registry/generic/registrytest"
)

// TestAcceptedAt_SetByServerOnly: the time when a cluster was accepted decides whose certificate is approved, so only the server may set it.
func TestAcceptedAt_SetByServerOnly(t *testing.T) {
	const forged = "2001-01-01T00:00:00Z"
	s := newStorage(t)
	update := func(u rest.Updater, c *cluster.ManagedCluster, subresources ...string) *cluster.ManagedCluster {
		t.Helper()
		updated, err := registrytest.Update(registrytest.Context(s, subresources...), u, c)
		if err != nil {
			t.Fatal(err)
		}
		return updated
	}
	forge := func(c *cluster.ManagedCluster, accepts bool) *cluster.ManagedCluster {
		c = c.DeepCopy()
		c.Annotations = map[string]string{cluster.AcceptedAtAnnotation: forged, "own": "x"}
		c.Spec.HubAcceptsClient = accepts
		return c
	}
	at := func(c *cluster.ManagedCluster) string { return c.Annotations[cluster.AcceptedAtAnnotation] }
	wantNow := func(what string, c *cluster.ManagedCluster) {
		t.Helper()
		if got, err := time.Parse(time.RFC3339, at(c)); err != nil || time.Since(got) > time.Hour || got.After(time.Now()) {
			t.Errorf("%s: %q, %v, want now", what, at(c), err)
		}
	}

	fromTheStart := forge(validCluster(), true)
	fromTheStart.Name = "c2"
	accepted := registrytest.Create(t, registrytest.Context(s), s, fromTheStart)
	if at(accepted) != "" {
		t.Errorf("accepted from the start: %q, want none", at(accepted))
	}
	if c := update(s, forge(accepted, true)); at(c) != "" {
		t.Errorf("accepted from the start, and forged later: %q, want none", at(c))
	}

	c := registrytest.Create(t, registrytest.Context(s), s, forge(validCluster(), false))
	if at(c) != "" || c.Annotations["own"] != "x" {
		t.Errorf("created with %v", c.Annotations)
	}
	c = update(s, forge(c, false))
	if at(c) != "" {
		t.Errorf("not accepted: %q", at(c))
	}
	c = update(s, forge(c, true))
	wantNow("accepted", c)
	was := at(c)
	for name, u := range s.Subresources {
		c = update(u, forge(c, true), name)
		if at(c) != was {
			t.Errorf("forged by %s: %q, was %q", name, at(c), was)
		}
	}
	c = update(s, forge(c, true))
	if at(c) != was {
		t.Errorf("forged: %q, was %q", at(c), was)
	}
	removed := c.DeepCopy()
	removed.Annotations = nil
	c = update(s, removed)
	if at(c) != was {
		t.Errorf("removed: %q, was %q", at(c), was)
	}
	c = update(s, forge(c, false))
	if at(c) != "" {
		t.Errorf("denied: %q", at(c))
	}
	wantNow("accepted by the subresource", update(s.Subresources["accept"], forge(c, true), "accept"))
}
