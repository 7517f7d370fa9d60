// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustercertificates

import (
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/controllers/registration/record"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// A holder of a bootstrap token can request the certificate of any cluster. These rivals do, for one that an agent without AnnotationAgentKey
// joins.
func TestAttack_RivalCannotTakeOverCluster(t *testing.T) {
	for name, play := range map[string]func(*hub){
		"asks before the hub has looked": func(h *hub) {
			h.ask("agent", "agent", bootstrap)
			h.accept(nil)
			h.ask("rival", "rival", bootstrap)
			h.want()
		},
		"asks when the agent has its certificate": func(h *hub) {
			h.ask("agent", "agent", bootstrap)
			h.accept(nil)
			h.want("agent")
			h.ask("rival", "rival", bootstrap)
			h.want("agent")
			if !strings.Contains(h.waits(), "request rival waits for an admin: it is for another key") {
				h.Errorf("the cluster says %q", h.waits())
			}
			h.collect("rival")
			h.settle()
			if h.waits() != "" {
				h.Errorf("nothing waits, and the cluster says %q", h.waits())
			}
		},
		"asks when the agent's request has been collected": func(h *hub) {
			h.ask("agent", "agent", bootstrap)
			h.accept(nil)
			h.want("agent")
			h.collect("agent")
			h.ask("rival", "rival", bootstrap)
			h.want()
		},
		"asks at the same time": func(h *hub) {
			h.ask("agent", "agent", bootstrap)
			h.ask("rival", "rival", bootstrap)
			h.accept(nil)
			h.want()
			if !strings.Contains(h.waits(), "several keys were requested at the same time") || !strings.Contains(h.waits(), "--csr") {
				h.Errorf("the cluster says %q", h.waits())
			}
			// The other request is deleted: that decides nothing.
			h.collect("agent")
			h.want()
			h.ask("rival again", "rival", bootstrap)
			h.want()
		},
		"has asked before the cluster was there": func(h *hub) {
			h.now = began
			h.ask("rival", "rival", bootstrap)
			h.later()
			h.ask("agent", "agent", bootstrap)
			h.accept(nil)
			h.want()
		},
		"asks first, after the acceptance": func(h *hub) {
			h.accept(nil)
			h.ask("rival", "rival", bootstrap)
			h.want()
			if !strings.Contains(h.waits(), "when it was accepted") {
				h.Errorf("the cluster says %q", h.waits())
			}
		},
		"has asked for a cluster that is accepted from the start": func(h *hub) {
			h.ask("rival", "rival", bootstrap)
			h.accept(nil)
			c := &clusterv1.ManagedCluster{}
			h.get("c1", c)
			c.Annotations = nil
			if err := h.client.Update(h.Context(), c); err != nil {
				h.Fatal(err)
			}
			h.want()
		},
		"asks beside whom accept named": func(h *hub) {
			h.ask("rival", "rival", bootstrap)
			h.accept(func(kept *record.Record) { kept.Requesters = "system:bootstrap:named0" })
			h.want()
			h.ask("agent", "agent", "system:bootstrap:named0")
			h.want("agent")
		},
		"made the cluster with its key, and accept named others": func(h *hub) {
			h.ask("rival", "rival", bootstrap)
			h.ask("agent", "agent", "system:bootstrap:named0")
			h.accept(func(kept *record.Record) { kept.Key, kept.Requesters = h.keyOf("rival"), "system:bootstrap:named0" })
			h.want()
		},
		"asks when accept named too many": func(h *hub) {
			h.ask("rival", "rival", bootstrap)
			h.accept(func(kept *record.Record) {
				kept.Requesters = strings.Repeat("system:serviceaccount:some-namespace:some-account,", 30)
			})
			h.want()
		},
		"asks beside a trusted user": func(h *hub) {
			h.process.BootstrapUsers, h.process.TrustedUsers = []string{"joiner"}, []string{"joiner"}
			h.ask("agent", "agent", "joiner")
			h.ask("rival", "rival", bootstrap)
			h.accept(nil)
			h.want("agent")
		},
		"asks after the agent was approved by hand, and before the cluster is accepted": func(h *hub) {
			h.ask("agent", "agent", bootstrap)
			h.conclude("agent", certificatesv1.CertificateApproved)
			h.ask("rival", "rival", bootstrap)
			h.accept(nil)
			h.want("agent")
			h.wantPinned("agent")
		},
		"has the key that the agent had before it renewed": func(h *hub) {
			h.ask("agent", "agent", bootstrap)
			h.accept(nil)
			h.want("agent")
			h.ask("renewal", "renewed", c1Agent)
			h.want("agent", "renewal")
			h.ask("rival", "agent", bootstrap)
			h.want("agent", "renewal")
			h.wantPinned("renewed")
		},
		"made the cluster with its key, and an admin has approved the agent's by hand": func(h *hub) {
			h.ask("a rival", "rival", bootstrap)
			h.ask("b agent", "agent", bootstrap)
			h.conclude("b agent", certificatesv1.CertificateApproved)
			h.accept(func(kept *record.Record) { kept.Key = h.keyOf("rival") })
			h.look("a rival") // before the process sees the admin's decision
			h.want("b agent")
			h.wantPinned("agent")
		},
		"asks as the acceptance is noted, by a clock that is behind": func(h *hub) {
			h.accept(nil)
			h.now = h.now.Add(-12 * time.Second)
			h.ask("rival", "rival", bootstrap)
			h.want()
		},
		"has asked as the agent that the cluster of the name before had": func(h *hub) {
			h.ask("renewal", "rival", c1Agent)
			h.make("uid2")
			h.ask("agent", "agent", bootstrap)
			h.accept(nil)
			h.want("agent")
			if !strings.Contains(h.waits(), "before the ManagedCluster") {
				h.Errorf("the cluster says %q", h.waits())
			}
		},
		"the same, by a clock that is ahead": func(h *hub) {
			h.ask("renewal", "rival", c1Agent)
			h.now = h.now.Add(-12 * time.Second)
			h.make("uid2")
			h.later()
			h.ask("agent", "agent", bootstrap)
			h.accept(nil)
			h.want("agent")
		},
		"had the key before the cluster was denied, and is accepted again with none": func(h *hub) {
			h.ask("rival", "rival", bootstrap)
			h.conclude("rival", certificatesv1.CertificateApproved)
			h.accept(func(kept *record.Record) { kept.KeySince = h.now.UTC().Format(time.RFC3339) })
			h.want("rival")
			h.wantPinned("nobody")
		},
		"was approved for a cluster of the name before": func(h *hub) {
			h.ask("rival", "rival", bootstrap)
			h.conclude("rival", certificatesv1.CertificateApproved)
			h.make("uid2")
			h.ask("agent", "agent", bootstrap)
			h.accept(nil)
			h.want("agent", "rival")
			h.wantPinned("agent")
			h.ask("rival again", "rival", bootstrap)
			h.want("agent", "rival")
		},
	} {
		t.Run(name, func(t *testing.T) { play(newHub(t)) })
	}
}

func TestPin_ApprovedKey(t *testing.T) {
	for name, play := range map[string]func(*hub){
		"the process ends before it approves": func(h *hub) {
			h.ask("agent", "agent", bootstrap)
			h.accept(nil)
			h.ends = true
			h.look("agent")
			h.wantPinned("agent")
			h.ask("rival", "rival", bootstrap)
			h.want("agent")
		},
		"the process ends in a renewal": func(h *hub) {
			h.ask("agent", "agent", bootstrap)
			h.accept(nil)
			h.want("agent")
			h.ask("renewal", "renewed", c1Agent)
			h.ends = true
			h.look("renewal")
			h.want("agent", "renewal")
			h.wantPinned("renewed")
		},
		"the agent comes back with its key, its certificate having run out": func(h *hub) {
			h.ask("agent", "agent", bootstrap)
			h.accept(nil)
			h.want("agent")
			h.collect("agent")
			h.ask("again", "agent", bootstrap)
			h.want("again")
		},
		"its request was collected before the cluster was accepted": func(h *hub) {
			h.ask("agent", "agent", bootstrap)
			h.settle()
			h.collect("agent")
			h.ask("again", "another", bootstrap) // agents of upstream create a new key
			h.accept(nil)
			h.want("again")
		},
		"an admin approves one of several": func(h *hub) {
			h.ask("agent", "agent", bootstrap)
			h.ask("rival", "rival", bootstrap)
			h.accept(nil)
			h.want()
			h.conclude("agent", certificatesv1.CertificateApproved)
			h.want("agent")
			h.wantPinned("agent")
		},
		"an admin approves another key, and nothing older moves it back": func(h *hub) {
			h.ask("agent", "agent", bootstrap)
			h.accept(nil)
			h.want("agent")
			h.ask("another", "another", bootstrap)
			h.want("agent")
			h.now = began.Add(2 * 60 * 60 * 1e9) // the process has pinned by its own clock
			h.conclude("another", certificatesv1.CertificateApproved)
			h.want("agent", "another")
			h.wantPinned("another")
		},
		"renews with its key, in the moment that its cluster is made anew": func(h *hub) {
			h.ask("renewal", "agent", c1Agent)
			h.make("uid2")
			h.accept(func(kept *record.Record) { kept.Key = h.keyOf("agent") })
			h.want("renewal")
		},
		"of a hub that did not pin: the agent renews": func(h *hub) {
			h.accept(nil)
			c := &clusterv1.ManagedCluster{}
			h.get("c1", c)
			c.Status.Conditions = []metav1.Condition{{Type: registration.ConditionJoined, Status: "True"}}
			if err := h.client.Status().Update(h.Context(), c); err != nil {
				h.Fatal(err)
			}
			h.ask("rival", "rival", bootstrap)
			h.want()
			h.ask("renewal", "agent", c1Agent)
			h.want("renewal")
			h.wantPinned("agent")
		},
		"a denied request does not count": func(h *hub) {
			h.ask("rival", "rival", bootstrap)
			h.conclude("rival", certificatesv1.CertificateDenied)
			h.ask("agent", "agent", bootstrap)
			h.accept(nil)
			h.want("agent")
		},
	} {
		t.Run(name, func(t *testing.T) { play(newHub(t)) })
	}
}
