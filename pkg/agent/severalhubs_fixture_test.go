// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/clusterhub/clusterhub/pkg/agent/agenttest"
	"github.com/clusterhub/clusterhub/pkg/agent/health"
	"github.com/clusterhub/clusterhub/pkg/agent/hub"
	"github.com/clusterhub/clusterhub/pkg/agent/hubs"
	"github.com/clusterhub/clusterhub/pkg/agent/identity/csr"
	"github.com/clusterhub/clusterhub/pkg/registration"
	"github.com/clusterhub/clusterhub/test/leak"
)

const (
	// fleetToken is in all bootstrap kubeconfigs.
	fleetToken = "hunter2-hunter2-hunter2-hunter2"
	// timeout is the time after which a hub is given up, unless a test sets another.
	timeout = 10 * time.Minute
)

var errDown = errors.New("dial tcp: connection refused")

// fleet is a managed cluster with several hubs, a, b and so on: the first one has the managed cluster, and the folder of Secrets.
type fleet struct {
	*world
	hubs map[string]*agenttest.World
	// down are the hubs that do not respond.
	lock sync.Mutex
	down []string
	dir  string
	// timeout is the time after which a hub is given up.
	timeout time.Duration
	health  *health.Health
	// told are the events about hubs.
	told []string
}

func newFleet(t *testing.T, names ...string) *fleet {
	t.Helper()
	f := &fleet{world: newWorld(t), hubs: map[string]*agenttest.World{}, dir: t.TempDir(), timeout: timeout}
	for i, name := range names {
		w := f.World
		if i > 0 {
			w = agenttest.NewWorld(t)
		}
		w.Refuse = func(string, string, string) error {
			f.lock.Lock()
			defer f.lock.Unlock()
			if slices.Contains(f.down, name) {
				return errDown
			}
			return nil
		}
		f.hubs[name] = w
		f.secret(name, bootstrapOf(name))
	}
	return f
}

func bootstrapOf(hub string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"+
		"clusters: [{name: c, cluster: {server: \"https://%s.example\"}}]\nusers: [{name: u, user: {token: %s}}]\n", hub, fleetToken)
}

func (f *fleet) path(name string) string {
	return filepath.Join(f.dir, name, registration.KeyKubeconfig)
}

// secret mounts a Secret, or removes it if it has no content.
func (f *fleet) secret(name, content string) {
	f.T.Helper()
	err := os.RemoveAll(filepath.Join(f.dir, name))
	if err == nil && content != "" {
		if err = os.Mkdir(filepath.Join(f.dir, name), 0o700); err == nil {
			err = os.WriteFile(f.path(name), []byte(content), 0o600)
		}
	}
	if err != nil {
		f.T.Fatal(err)
	}
}

// set sets which hubs are down.
func (f *fleet) set(down ...string) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.down = down
}

// agent returns a new process with the bootstrap kubeconfigs of hubs.
func (f *fleet) agent(names ...string) *agent {
	f.T.Helper()
	j := f.joiner()
	f.health = j.Health
	o := hubs.NewOptions()
	for _, name := range names {
		o.Files = append(o.Files, f.path(name))
	}
	if len(names) > 0 {
		j.Hubs = &hubs.Hubs{Candidates: o.Candidates(), Timeout: f.timeout}
	}
	j.Connect = func(config *rest.Config) (*hub.Hub, error) {
		for name, w := range f.hubs {
			if config.Host == "https://"+name+".example" {
				return w.Connect(config)
			}
		}
		return nil, fmt.Errorf("there is no hub %s", config.Host)
	}
	a := f.agentOf(j, csr.New())
	for _, w := range f.hubs {
		w.Grant(a.rights())
	}
	if a.Hubs != nil {
		tell := a.Hubs.Tell
		a.Hubs.Tell = func(ctx context.Context, eventType, reason, message string) {
			f.told = append(f.told, message)
			tell(ctx, eventType, reason, message)
		}
	}
	return a
}

// accept makes some hubs accept the cluster.
func (f *fleet) accept(names ...string) {
	for _, name := range names {
		f.hubs[name].Accept()
	}
}

// pass advances the time, while some hubs accept the clusters and requests that they get.
func (f *fleet) pass(d time.Duration, accepting ...string) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		agenttest.Pass(min(30*time.Second, time.Until(end)))
		for _, name := range accepting {
			if len(f.hubs[name].CSRs()) > 0 {
				f.hubs[name].Accept()
			}
		}
	}
}

// on fails the test unless the agent works with a hub.
func (f *fleet) on(name string) {
	f.T.Helper()
	s := f.State()
	if s.Hub != name || len(s.Cert) == 0 || len(s.GivenUp) > 0 {
		f.T.Fatalf("the hub is %q, want %q; it has a certificate: %t; given up are %+v; the events are %q", s.Hub, name, len(s.Cert) > 0, s.GivenUp, f.told)
	}
	if server := agenttest.LoadKubeconfig(f.T, s.Kubeconfig).Clusters["default-cluster"].Server; server != "https://"+name+".example" {
		f.T.Errorf("the kubeconfig of the hub %s names %s", name, server)
	}
	if err := f.health.Ready(); err != nil {
		f.T.Errorf("with the hub %s it is not ready: %v", name, err)
	}
}

// event reports an error unless there is an event that has all of some texts, and none has the token.
func (f *fleet) event(texts ...string) {
	f.T.Helper()
	found := false
	for _, e := range slices.Concat(f.told, f.Events()) {
		has := true
		for _, text := range texts {
			has = has && strings.Contains(e, text)
		}
		found = found || has
		if leaked := (leak.Secrets{"the token": []byte(fleetToken)}).Find([]byte(e)); len(leaked) > 0 {
			f.T.Errorf("an event has the token: %s", e)
		}
	}
	if !found {
		f.T.Errorf("no event has %q: %q", texts, f.told)
	}
}
