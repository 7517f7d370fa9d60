// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"context"
	"errors"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterhub/clusterhub/pkg/agent/hub"
	"github.com/clusterhub/clusterhub/pkg/agent/rights"
	"github.com/clusterhub/clusterhub/pkg/agent/state"
	"github.com/clusterhub/clusterhub/pkg/agent/task"
	"github.com/clusterhub/clusterhub/pkg/agent/tasks/status"
	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// AgentName is the name of the agent in sessions.
const AgentName = "agent"

// Session returns the session of an agent whose cluster the hub has accepted, and which has no tasks yet.
func (w *World) Session() task.Session {
	w.T.Helper()
	w.Set(func() { w.Granted = true })
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: ClusterName}}
	cluster.Spec.HubAcceptsClient, cluster.Spec.LeaseDurationSeconds = true, 60
	if err := w.HubClusters.Tracker().Add(cluster); err != nil {
		w.T.Fatal(err)
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: registration.LeaseName, Namespace: ClusterName}}
	if err := w.HubKube.Tracker().Add(lease); err != nil {
		w.T.Fatal(err)
	}
	h, err := w.ConnectAs(registration.ClusterUser(ClusterName, AgentName))
	if err != nil {
		w.T.Fatal(err)
	}
	kubeconfig, err := hub.Kubeconfig(BootstrapKubeconfig(), ClusterName, clientcmdapi.NewAuthInfo())
	if err != nil {
		w.T.Fatal(err)
	}
	return task.Session{Hub: h, State: state.State{ClusterName: ClusterName, AgentName: AgentName, Kubeconfig: kubeconfig},
		Random: func() float64 { return 0.5 }}
}

// Run runs tasks in a session, with the rights that they declare, until stop, which waits for their end, or until the end of the test.
func (w *World) Run(s task.Session, tasks ...task.Task) (stop func()) {
	w.T.Helper()
	var stated rights.Rights
	for _, t := range tasks {
		stated = rights.Sum(stated, t.Rights)
	}
	w.Grant(stated)
	ctx, cancel := context.WithCancel(Quiet(w.T))
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, tasks) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			w.T.Errorf("the session has ended: %v", err)
		}
	})
	w.T.Cleanup(stop)
	return stop
}

// Status returns the status task, with facts that a test sets.
func (w *World) Status(view *hub.View, cluster *hub.ClusterConfig) (task.Task, *Facts) {
	facts := &Facts{now: status.Observation{Version: "v1.37.1"}}
	return status.New(status.Options{View: view, Cluster: cluster, Version: Version, Facts: facts}), facts
}

// Version is the version of the agent.
const Version = "v1.2.3"

// Update stores a cluster on the hub.
func (w *World) Update(c *clusterv1.ManagedCluster) {
	w.T.Helper()
	if err := w.HubClusters.Tracker().Update(clusterv1.SchemeGroupVersion.WithResource("managedclusters"), c, ""); err != nil {
		w.T.Fatal(err)
	}
}

// Condition returns a condition of the cluster on the hub, or an empty one.
func (w *World) Condition(conditionType string) metav1.Condition {
	w.T.Helper()
	if found := meta.FindStatusCondition(w.Cluster().Status.Conditions, conditionType); found != nil {
		return *found
	}
	return metav1.Condition{}
}

// Facts are facts of the managed cluster that a test sets.
type Facts struct {
	mu  sync.Mutex
	now status.Observation
}

var _ status.Facts = &Facts{}

// NewFacts returns Facts with an initial observation.
func NewFacts(now status.Observation) *Facts { return &Facts{now: now} }

// Start implements status.Facts.
func (f *Facts) Start(context.Context, func()) (stop func(), err error) { return func() {}, nil }

// Observe implements status.Facts.
func (f *Facts) Observe(context.Context) status.Observation {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// Set replaces the observation.
func (f *Facts) Set(now status.Observation) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = now
}
