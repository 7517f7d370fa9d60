// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/clusterhub/clusterhub/pkg/agent/agenttest"
	"github.com/clusterhub/clusterhub/pkg/agent/health"
	"github.com/clusterhub/clusterhub/pkg/agent/identity/csr"
	"github.com/clusterhub/clusterhub/pkg/agent/rights"
	"github.com/clusterhub/clusterhub/pkg/agent/task"
	"github.com/clusterhub/clusterhub/pkg/agent/tasks/status"
)

// idle is a part that does nothing until its context ends, and then returns soon.
type idle struct{ ended atomic.Bool }

func (i *idle) run(ctx context.Context) error {
	<-ctx.Done()
	time.Sleep(time.Second)
	i.ended.Store(true)
	return nil
}

func (i *idle) rights() rights.Rights { return rights.Rights{} }

func (i *idle) sessionTasks() []task.Task { return nil }

func kubeconfigOf(server string) string {
	return "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: \"https://" + server + "\"}}]\n" +
		"contexts: [{name: c, context: {cluster: c, user: c}}]\nusers: [{name: c, user: {tokenFile: token}}]\ncurrent-context: c\n"
}

func TestProcess_RestartsOnceForEachKubeconfigChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		put := func(name, content string) {
			t.Helper()
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		o := NewOptions()
		o.Spoke.Detached, o.Spoke.Kubeconfig, o.Spoke.ManagementKubeconfig = true, filepath.Join(dir, "managed"), filepath.Join(dir, "management")
		o.Spoke.Namespace, o.Spoke.ManagedNamespace = "home", "own"
		o.BootstrapKubeconfig = filepath.Join(dir, "bootstrap")
		p := &process{Options: o, health: &health.Health{}}
		ctx, cancel := context.WithCancel(agenttest.Quiet(t))
		defer cancel()
		first := make(chan *clusters)
		go func() { first <- p.next(ctx, nil) }()
		for _, step := range []struct{ waits, name, content string }{
			{"--spoke-kubeconfig", "managed", "nonsense"},
			{"--spoke-kubeconfig", "managed", kubeconfigOf("managed")},
			{"--spoke-kubeconfig", "token", "t"},
			{"--management-kubeconfig", "management", kubeconfigOf("management")},
		} {
			agenttest.Pass(time.Minute)
			if err := p.health.Ready(); err == nil || !strings.Contains(err.Error(), step.waits) {
				t.Errorf("before %s: readiness is %v, want %s", step.name, err, step.waits)
			}
			put(step.name, step.content)
		}
		now := <-first // it does not wait for a bootstrap kubeconfig: an agent with an identity needs none
		if now.own.Config.Host != "https://managed" || now.own.Namespace != "own" || now.home.Namespace != "home" {
			t.Errorf("the managed cluster is %s, with namespace %s, and the state is in %s", now.own.Config.Host, now.own.Namespace, now.home.Namespace)
		}
		for _, step := range []struct {
			name, content string
			anew          bool
		}{
			{"token", "another", false},
			{"managed", "nonsense", false},
			{"managed", kubeconfigOf("managed") + "# the same\n", false},
			{"managed", kubeconfigOf("elsewhere"), true},
			{"management", kubeconfigOf("elsewhere"), true},
			{"bootstrap", kubeconfigOf("hub"), true},
			{"bootstrap", strings.ReplaceAll(kubeconfigOf("hub"), "tokenFile: token", "token: another"), false},
			{"bootstrap", "nonsense", false},
			{"bootstrap", kubeconfigOf("elsewhere"), true},
		} {
			limited, end := context.WithTimeout(ctx, 10*time.Minute)
			part := &idle{}
			time.AfterFunc(time.Minute, func() { put(step.name, step.content) })
			next, err := p.until(limited, part, now)
			if err != nil || !part.ended.Load() {
				t.Errorf("%s: it has ended: %t, %v", step.name, part.ended.Load(), err)
			}
			if anew := next != nil; anew != step.anew || anew && limited.Err() != nil {
				t.Errorf("%s %.40q: it begins anew: %t", step.name, step.content, anew)
			}
			end()
			if next != nil {
				now = next
			}
		}
	})
}

// A changed kubeconfig does not count as a restart: it does not bring back a cluster that an admin of the hub has deleted.
func TestProcess_KubeconfigChangeDoesNotReregister(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, stop := w.joined()
		stop()
		w.Set(func() { w.Granted = false })
		before := w.Asked(agenttest.BootstrapUser + " create managedclusters")
		b := w.newAgent()
		again, err := newAgent(b.Joiner, a.view, csr.New(), agenttest.NewFacts(status.Observation{Version: "v1.37.1"}))
		if err != nil {
			t.Fatal(err)
		}
		stop = start(t, again)
		agenttest.Pass(time.Hour)
		stop()
		if n := w.Asked(agenttest.BootstrapUser+" create managedclusters") - before; n > 0 {
			t.Errorf("it was registered again %d times", n)
		}
	})
}
