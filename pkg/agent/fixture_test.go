// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"sync"
	"testing"
	"time"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterhub/clusterhub/pkg/agent/agenttest"
	"github.com/clusterhub/clusterhub/pkg/agent/health"
	"github.com/clusterhub/clusterhub/pkg/agent/hub"
	"github.com/clusterhub/clusterhub/pkg/agent/identity"
	"github.com/clusterhub/clusterhub/pkg/agent/identity/csr"
	"github.com/clusterhub/clusterhub/pkg/agent/join"
	"github.com/clusterhub/clusterhub/pkg/agent/tasks/status"
)

// world is a World for agents with all their parts.
type world struct{ *agenttest.World }

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{agenttest.NewWorld(t)}
}

// joiner returns the Joiner of an agent of the managed cluster, with no state in the process.
func (w *world) joiner() *join.Joiner {
	return &join.Joiner{
		Cluster: &hub.ClusterConfig{Name: agenttest.ClusterName, LeaseSeconds: 60}, Spoke: w.Own(), Home: w.Home(), Store: w.Store(),
		Bootstrap: func(context.Context) (*clientcmdapi.Config, error) { return agenttest.BootstrapKubeconfig(), nil },
		Connect:   w.Connect, Health: &health.Health{}, Random: func() float64 { return 0.5 },
	}
}

// newAgent returns an agent that registers by a certificate.
func (w *world) newAgent() *agent { return w.agentOf(w.joiner(), csr.New()) }

func (w *world) agentOf(j *join.Joiner, driver identity.RegisterDriver) *agent {
	w.T.Helper()
	a, err := newAgent(j, hub.NewView(j.Cluster.LeaseSeconds), driver, agenttest.NewFacts(status.Observation{Version: "v1.37.1"}))
	if err != nil {
		w.T.Fatal(err)
	}
	w.Grant(a.rights())
	return a
}

// start runs an agent until stop, which waits for its end, or until the end of the test.
func start(t *testing.T, a *agent) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(agenttest.Quiet(t))
	ended := make(chan error, 1)
	go func() { ended <- a.run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// joined runs an agent until its cluster has joined.
func (w *world) joined() (a *agent, stop func()) {
	w.T.Helper()
	a = w.newAgent()
	stop = start(w.T, a)
	agenttest.Pass(5 * time.Second)
	w.Accept()
	agenttest.Pass(time.Minute)
	if len(w.State().Cert) == 0 {
		w.T.Fatal("the cluster has not joined")
	}
	return a, stop
}
