// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterhub/clusterhub/pkg/agent/agenttest"
	"github.com/clusterhub/clusterhub/pkg/agent/health"
	"github.com/clusterhub/clusterhub/pkg/agent/hubs"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// alone returns a new process with the one bootstrap kubeconfig of a hub.
func (f *fleet) alone(name string) *agent {
	a := f.agent()
	a.Bootstrap = func(context.Context) (*clientcmdapi.Config, error) {
		return hubs.Candidate{Name: name, Path: f.path(name)}.Read()
	}
	return a
}

// TestHubs_ChangesNumberOfHubs verifies that the agent uses the identity that it has on each hub.
func TestHubs_ChangesNumberOfHubs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "a", "b")
		stop := start(t, f.alone("a"))
		f.pass(time.Minute, "a")
		stop()
		ofA := f.State()
		// The Secret of the hub is last in the list, and is created after the process has started.
		f.secret("a", "")
		stop = start(t, f.agent("b", "a"))
		f.pass(time.Minute, "b")
		if s := f.State(); s.Hub != "" || string(s.Cert) != string(ofA.Cert) || f.health.Ready() != nil {
			t.Fatalf("while it is not known which hub it has, it uses %q: %v", s.Hub, f.health.Ready())
		}
		stop()
		f.secret("a", bootstrapOf("a"))
		stop = start(t, f.agent("b", "a"))
		f.pass(time.Minute, "b")
		f.on("a")
		if s := f.State(); string(s.Cert) != string(ofA.Cert) || f.hubs["b"].Asked("") > 0 {
			t.Error("it has joined again")
		}
		f.set("a")
		f.pass(timeout+4*time.Minute, "b")
		f.on("b")
		stop()

		f.set()
		requests := len(f.hubs["a"].CSRs())
		stop = start(t, f.alone("a"))
		f.pass(2 * time.Minute)
		s := f.State()
		if s.Hub != "" || len(s.Others) > 0 || string(s.Key) != string(ofA.Key) || f.health.Ready() != nil || len(f.hubs["a"].CSRs()) != requests {
			t.Errorf("with one hub again, it uses %q, knows %d others, and has its key of before: %t; %v", s.Hub, len(s.Others), string(s.Key) == string(ofA.Key), f.health.Ready())
		}
		stop()
	})
}

// TestHubs_LeavesRemovedHub verifies that the agent leaves a hub that is removed from the list, and deletes its private key.
func TestHubs_LeavesRemovedHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "a", "b", "c")
		stop := start(t, f.agent("a", "b"))
		f.pass(time.Minute, "a")
		f.on("a")
		stop()
		// A different order is no reason to leave.
		stop = start(t, f.agent("b", "a"))
		f.pass(time.Minute, "b")
		f.on("a")
		stop()
		stop = start(t, f.agent("c", "b"))
		f.pass(2*time.Minute, "c", "b")
		f.on("c")
		f.event("The hub a is given up (NotListed)", "bootstrap kubeconfig c")
		if s := f.State(); len(s.Others) > 0 {
			t.Errorf("it remembers %d hubs that it does not have", len(s.Others))
		}
		stop()
		// An agent that had one hub leaves it too, if the list is known to have other hubs only.
		f = newFleet(t, "a", "b", "c")
		stop = start(t, f.alone("a"))
		f.pass(time.Minute, "a")
		stop()
		stop = start(t, f.agent("b", "c"))
		f.pass(2*time.Minute, "b")
		f.on("b")
		stop()
	})
}

// TestAttack_InvalidSecretDoesNotEndSession: an unusable kubeconfig counts as unchanged.
func TestAttack_InvalidSecretDoesNotEndSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "a", "b")
		stop := start(t, f.agent("a", "b"))
		f.pass(time.Minute, "a")
		f.on("a")
		cert := string(f.State().Cert)
		for _, content := range []string{"", "\x00", strings.Replace(bootstrapOf("evil"), "token: "+fleetToken, "tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token", 1)} {
			f.secret("a", content)
			stop()
			stop = start(t, f.agent("a", "b"))
			f.pass(timeout+time.Minute, "b")
			s := f.State()
			if server := agenttest.LoadKubeconfig(t, s.Kubeconfig).Clusters["default-cluster"].Server; s.Hub != "a" || string(s.Cert) != cert || server != "https://a.example" {
				t.Errorf("with the Secret %.20q the hub is %s at %s", content, s.Hub, server)
			}
		}
		if f.hubs["b"].Asked("") > 0 {
			t.Error("another hub was asked")
		}
		// A kubeconfig with a different server is used, as with one hub; if that server does not work, the next hub is tried.
		f.secret("a", bootstrapOf("evil"))
		stop()
		stop = start(t, f.agent("a", "b"))
		f.pass(timeout+4*time.Minute, "b")
		f.on("b")
		stop()
	})
}

// TestProcess_FollowsBootstrapKubeconfigs: a different server restarts the part, and a different token does not.
func TestProcess_FollowsBootstrapKubeconfigs(t *testing.T) {
	f := newFleet(t, "a", "b")
	o := NewOptions()
	f.secret("managed", strings.Replace(kubeconfigOf("managed"), "tokenFile: token", "token: t", 1))
	o.Spoke.Kubeconfig = f.path("managed")
	o.Hubs.Files = []string{f.path("a"), f.path("b"), f.path("c")}
	p := &process{Options: o, health: &health.Health{}}
	now, err := p.reload(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name, content string
		restarts      bool
	}{
		{"a", strings.ReplaceAll(bootstrapOf("a"), fleetToken, "another-token"), false},
		{"a", "", false},
		{"a", "garbage", false},
		{"a", bootstrapOf("elsewhere"), true},
		{"c", bootstrapOf("c"), true},
		{"c", "", false},
	} {
		f.secret(step.name, step.content)
		next, err := p.reload(now)
		if restarts := next != nil; restarts != step.restarts || !restarts && step.content == "" && err == nil {
			t.Errorf("%s: %.30q: it restarts: %t, %v", step.name, step.content, restarts, err)
		}
		if next != nil {
			now = next
		}
	}
	part, err := p.assemble(now)
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range part.rights().Management.Namespace {
		if slices.Contains(rule.ResourceNames, registration.BootstrapSecret) {
			t.Errorf("it states a right to a Secret that it does not read: %+v", rule)
		}
	}
}
