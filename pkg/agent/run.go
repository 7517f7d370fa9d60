// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"

	"github.com/clusterhub/clusterhub/pkg/agent/health"
	"github.com/clusterhub/clusterhub/pkg/agent/hub"
	"github.com/clusterhub/clusterhub/pkg/agent/hubs"
	"github.com/clusterhub/clusterhub/pkg/agent/identity"
	"github.com/clusterhub/clusterhub/pkg/agent/join"
	"github.com/clusterhub/clusterhub/pkg/agent/rights"
	"github.com/clusterhub/clusterhub/pkg/agent/spoke"
	"github.com/clusterhub/clusterhub/pkg/agent/state"
	"github.com/clusterhub/clusterhub/pkg/agent/task"
	"github.com/clusterhub/clusterhub/pkg/agent/tasks/edge"
	"github.com/clusterhub/clusterhub/pkg/agent/tasks/labels"
	"github.com/clusterhub/clusterhub/pkg/agent/tasks/lease"
	"github.com/clusterhub/clusterhub/pkg/agent/tasks/namespaces"
	"github.com/clusterhub/clusterhub/pkg/agent/tasks/renewal"
	"github.com/clusterhub/clusterhub/pkg/agent/tasks/status"
	"github.com/clusterhub/clusterhub/pkg/agent/tasks/work"
	"github.com/clusterhub/clusterhub/pkg/command"
	"github.com/clusterhub/clusterhub/pkg/command/metrics"
)

// Run registers the cluster and reports its state to the hub until the context ends.
func (o *Options) Run(ctx context.Context) error {
	p := o.process()
	stopHealth, err := health.Serve(ctx, "health", o.HealthAddress, p.health.Handler())
	if err != nil {
		return explain("listening on --health-probe-bind-address", err)
	}
	defer stopHealth()
	stopMetrics, err := p.metrics.Serve(ctx)
	if err != nil {
		return explain("listening on --metrics-bind-address", err)
	}
	defer stopMetrics()
	if err := p.run(ctx); err != nil {
		return explain("using the flags", err)
	}
	return nil
}

func (o *Options) process() *process {
	return &process{Options: o, health: &health.Health{}, view: hub.NewView(o.LeaseSeconds), metrics: metrics.New(o.Metrics, health.Metrics())}
}

// Assemble returns the tasks that the sessions of a process run with the current kubeconfigs, and the handler of its health checks.
func (o *Options) Assemble() ([]task.Task, http.Handler, error) {
	p := o.process()
	c, err := p.reload(nil)
	if err != nil {
		return nil, nil, err
	}
	part, err := p.assemble(c)
	if err != nil {
		return nil, nil, err
	}
	return part.sessionTasks(), p.health.Handler(), nil
}

// explain returns an error at startup as one clear line.
func explain(what string, err error) error {
	return fmt.Errorf("hub-agent cannot start: %s: %w", what, err)
}

// part is the part of the agent that a process runs.
type part interface {
	// run returns when the context ends, or with an error that only an admin can fix.
	run(ctx context.Context) error
	// rights returns the rights that all of its parts need.
	rights() rights.Rights
	// sessionTasks returns the tasks that each of its sessions runs.
	sessionTasks() []task.Task
}

// assemble returns the part that the flags select, with the current configuration of the clusters.
func (p *process) assemble(c *clusters) (part, error) {
	if !p.Registration {
		return p.newFollower(c), nil
	}
	cluster, err := p.cluster()
	if err != nil {
		return nil, err
	}
	bootstrap := &hub.Bootstrap{File: p.BootstrapKubeconfig, Client: c.home.Client, Namespace: c.home.Namespace}
	joiner := &join.Joiner{
		Cluster: cluster, Spoke: c.own, Home: c.home, Store: &state.Store{Client: c.home.Client, Namespace: c.home.Namespace},
		Bootstrap: bootstrap.Read, Connect: hub.Bounded(p.Works.HubRequests), Health: p.health, Random: rand.Float64,
	}
	if len(p.Hubs.Files) > 0 {
		joiner.Hubs = &hubs.Hubs{Candidates: p.Hubs.Candidates(), Timeout: p.Hubs.Timeout()}
	}
	return newAgent(joiner, p.view, p.Drivers.Named(p.Auth), status.NewFacts(c.own, p.Claims), p.tasks(c)...)
}

// tasks returns the tasks that the flags select, beside those of every agent.
func (p *process) tasks(c *clusters) []task.Task {
	ofFlags := p.ClusterLabels
	ofFlags.Own, ofFlags.Tell = c.own, c.home.Report
	tasks := []task.Task{labels.New(ofFlags)}
	if p.Works.Enabled {
		tasks = append(tasks, work.New(p.works(), c.own))
	}
	if p.Edge.Enabled {
		tasks = append(tasks, edge.New(p.edgeNode(c.own)))
	}
	return tasks
}

// edgeNode returns the configuration of the edge node: services may be deployed where works may, and by default not to the namespace of the agent's
// identity.
func (p *process) edgeNode(own *spoke.Cluster) edge.Node {
	n := edge.Node{Own: own, View: p.view, Namespace: p.Edge.Namespace}
	if only := p.works().Namespace; only != "" {
		n.Namespace, n.Scoped = only, true
	}
	return n
}

// works returns the options of works, with the values of other flags that affect them.
func (o *Options) works() work.Options {
	works := o.Works
	if o.Spoke.NamespaceScoped {
		works.Namespace = o.Spoke.Namespace
	}
	works.Feedback.Raw = o.FeatureGate.Enabled(work.RawFeedback)
	return works
}

// rights returns the rights that all parts of the agent need.
func (a *agent) rights() rights.Rights {
	sum := rights.Sum(state.Rights, a.Rights())
	for _, t := range a.tasks {
		sum = rights.Sum(sum, t.Rights)
	}
	return sum
}

// newAgent completes an agent whose cluster and hub are set, with its identity and its tasks. more are the tasks that flags select.
func newAgent(j *join.Joiner, view *hub.View, driver identity.RegisterDriver, facts status.Facts, more ...task.Task) (*agent, error) {
	own, err := driver.New(identity.Agent{Store: j.Store, Connect: j.Connect, Random: j.Random, Report: view.Report, Tell: j.Home.Report})
	if err != nil {
		return nil, err
	}
	j.Identity = own
	refused := j.Store.Refused
	if several := j.Hubs; several != nil {
		several.Store, several.Health, several.Usable, several.Tell, several.Random = j.Store, j.Health, own.Usable, j.Home.Report, j.Random
		j.Bootstrap, refused = several.Bootstrap, several.RefusedIn(j.Store)
	}
	tasks := []task.Task{
		renewal.New(own, driver.Rights()),
		lease.New(view, j.Health),
		status.New(status.Options{View: view, Cluster: j.Cluster, Version: command.Version(), Facts: facts, Recreate: j.Recreate, Refused: refused, NamespaceScoped: j.Spoke.NamespaceScoped}),
	}
	if !j.Spoke.NamespaceScoped {
		tasks = append(tasks, namespaces.New(j.Spoke, view))
	}
	return &agent{Joiner: j, view: view, tasks: append(tasks, more...)}, nil
}
