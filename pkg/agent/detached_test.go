// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	kubefake "k8s.io/client-go/kubernetes/fake"

	"github.com/clusterhub/clusterhub/pkg/agent/agenttest"
	"github.com/clusterhub/clusterhub/pkg/agent/spoke"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// resources returns the resources that were requested from a cluster.
func resources(cluster *kubefake.Clientset) []string {
	var all []string
	for _, action := range cluster.Actions() {
		all = append(all, action.GetResource().Resource)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// The agent does all that it does in its life: it joins, renews its identity, creates what the hub asks for, reports problems, and leaves.
func TestDetached_SeparatesHubAndManagedCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.Detach()
		w.CertLife = time.Hour
		_, stop := w.joined()
		w.Ask("set/team")
		agenttest.Pass(50 * time.Minute)
		w.Approve()
		agenttest.Pass(10 * time.Minute)
		w.whole()
		w.ExpectLabel("team", "true")
		stop()

		w.acceptedCondition(w.Cluster(), "False", registration.ReasonDenied)
		out := &bytes.Buffer{}
		u := &unjoiner{store: w.Store(), own: w.Own(), drivers: drivers(), connect: w.Connect, random: func() float64 { return 0 }, out: out}
		if err := <-within(t, u, time.Hour); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		w.ExpectLabel("team", "false")
		if w.secretIsThere() {
			t.Error("the identity is still there")
		}
		if got := resources(w.Management); !slices.Equal(got, []string{"secrets"}) {
			t.Errorf("the management cluster was asked for %q", got)
		}
		if got := resources(w.Spoke); !slices.Equal(got, []string{"namespaces"}) {
			t.Errorf("the managed cluster was asked for %q", got)
		}
	})
}

// A managed cluster that is gone for good does not keep a cluster in the hub.
func TestDetached_UnjoinsWithoutManagedCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.Detach()
		_, stop := w.joined()
		stop()
		w.Set(func() { w.Granted = false })
		u := &unjoiner{store: w.Store(), drivers: drivers(), connect: w.Connect, random: func() float64 { return 0 }, out: &bytes.Buffer{}, force: true}
		if err := u.run(t.Context()); err != nil || w.secretIsThere() {
			t.Errorf("got %v, the secret is there: %t", err, w.secretIsThere())
		}
	})
}

// Messages for an admin are events on the cluster where the agent runs.
func TestDetached_EventsAreOnTheManagementCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.Detach()
		w.newAgent().Home.Report(agenttest.Quiet(t), "Warning", "Reason", "text")
		if got := w.Events(); !slices.Equal(got, []string{"text"}) || len(w.Spoke.Actions()) > 0 {
			t.Errorf("the events are %q, and the managed cluster was asked for %q", got, resources(w.Spoke))
		}
	})
}

func TestUnjoin_OnlyForceSkipsManagedCluster(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"management": kubeconfigOf("management"), "token": "t"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := spoke.Options{Detached: true, Kubeconfig: filepath.Join(dir, "none"), ManagementKubeconfig: filepath.Join(dir, "management"), Namespace: "n"}
	u := &unjoiner{out: &bytes.Buffer{}}
	if err := u.reach(&o); err == nil || !strings.Contains(err.Error(), "--spoke-kubeconfig") {
		t.Errorf("without force: %v", err)
	}
	u.force = true
	if err := u.reach(&o); err != nil || u.own != nil || u.store == nil {
		t.Errorf("with force: %v", err)
	}
	o.ManagementKubeconfig = filepath.Join(dir, "none")
	if err := u.reach(&o); err == nil || !strings.Contains(err.Error(), "--management-kubeconfig") {
		t.Errorf("without the cluster that has the identity: %v", err)
	}
}
