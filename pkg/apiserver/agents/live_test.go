// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clusterhub/clusterhub/pkg/registration"
)

// TestLive_JustAcceptedAgentIsAllowed verifies that an agent whose cluster was just accepted is allowed, even if the cache does not have
// it yet, or the agent was rejected before.
func TestLive_JustAcceptedAgentIsAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(groups, nil)
		c := &clusters{cached: map[string]bool{"d1": false}, live: map[string]bool{"d1": false}}
		a.Clusters = c
		if got, _ := decide(t, a, agent("d1"), "PUT", v1+"/d1"); got != deny {
			t.Fatalf("got %v", got)
		}
		time.Sleep(liveEvery + time.Millisecond)
		c.live = map[string]bool{"d1": true, "c9": true}
		for _, name := range []string{"d1", "c9"} {
			if got, reason := decide(t, a, agent(name), "PUT", v1+"/"+name); got != allow {
				t.Errorf("%s is accepted, and the cache does not know: %v (%s)", name, got, reason)
			}
		}
	})
}

// TestLive_DeniedClusterCausesOneReadPerSecond verifies that a denied cluster causes one read a second, however often its agents send requests, and for
// any resource.
func TestLive_DeniedClusterCausesOneReadPerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(groups, registration.DefaultAgentLabels())
		c := &clusters{cached: map[string]bool{"d1": false}, live: map[string]bool{"d1": false}}
		a.Clusters = c
		for range 1000 {
			for _, name := range []string{"d1", "n1"} {
				for _, path := range []string{v1 + "/" + name, v1 + "/" + name + "/status", v1 + "/" + name + "/leave"} {
					if got, _ := decide(t, a, agent(name), "PUT", path); got != deny {
						t.Fatalf("%s: %v", path, got)
					}
				}
			}
			time.Sleep(10 * time.Millisecond)
		}
		if want := 2 * 10; c.reads < want-2 || c.reads > want+2 {
			t.Errorf("%d reads in 10 s, want %d", c.reads, want)
		}
		// Reads, requests for other clusters, and writes by agents of accepted clusters cause no reads from etcd.
		c.reads, c.cached = 0, maps.Clone(c.cached)
		c.cached["c1"] = true
		for _, request := range [][2]string{{"GET", "d1"}, {"PUT", "c2"}, {"DELETE", "d1"}} {
			decide(t, a, agent("d1"), request[0], v1+"/"+request[1])
		}
		if got, _ := decide(t, a, agent("c1"), "PUT", v1+"/c1"); got != allow || c.reads > 0 {
			t.Errorf("got %v with %d reads", got, c.reads)
		}
	})
}

func TestLive_ManyDeniedClustersShareLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := New(groups, nil)
		c := &clusters{}
		a.Clusters = c
		for second := range 10 {
			for i := range 300 {
				name := fmt.Sprintf("d%d", second*200+i)
				if got, _ := decide(t, a, agent(name), "PUT", v1+"/"+name); got != deny {
					t.Fatalf("got %v", got)
				}
			}
			time.Sleep(time.Second)
		}
		if most := liveBurst + 10*livePerSecond; c.reads > most || c.reads < most/2 {
			t.Errorf("%d reads in 10 s, want up to %d", c.reads, most)
		}
	})
}
