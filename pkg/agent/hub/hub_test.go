// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"testing"

	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/agent/hub"
	"github.com/clusterhub/clusterhub/pkg/agent/limits"
)

func TestConnect_RejectsInvalidCA(t *testing.T) {
	if _, err := hub.New(&rest.Config{Host: "https://hub", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("x")}}); err == nil {
		t.Error("a certificate authority that is none is taken")
	}
}

// TestNew_DoesNotLimitWorks: an agent with many works is limited by its cluster and by its hub, and not by a client's default.
func TestNew_DoesNotLimitWorks(t *testing.T) {
	h, err := hub.New(&rest.Config{Host: "https://hub"})
	if err != nil {
		t.Fatal(err)
	}
	if limit := h.Works.RESTClient().GetRateLimiter().QPS(); limit < 50 {
		t.Errorf("%g requests about works per second", limit)
	}
	h, err = hub.Bounded(limits.Requests{QPS: 7, Burst: 9})(&rest.Config{Host: "https://hub"})
	if err != nil {
		t.Fatal(err)
	}
	if limit := h.Works.RESTClient().GetRateLimiter().QPS(); limit != 7 {
		t.Errorf("%g requests about works per second, want 7", limit)
	}
}
