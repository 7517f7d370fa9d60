// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package edge

import (
	"context"
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/clusterhub/clusterhub/pkg/agent/hub"
	"github.com/clusterhub/clusterhub/pkg/agent/rights"
	"github.com/clusterhub/clusterhub/pkg/agent/spoke"
	"github.com/clusterhub/clusterhub/pkg/agent/task"
	edgev1alpha1 "github.com/clusterhub/clusterhub/pkg/apis/edge/v1alpha1"
)

const (
	// interval is the time between two looks, less a quarter at most. What changes meanwhile is told then, but for the nodes.
	interval = 10 * time.Minute
	// pause is the shortest time between two looks, however much the nodes change.
	pause = time.Minute
	// nodesWithin is how long the first look waits for the nodes, so that the first that the hub hears of the facts is all of them.
	nodesWithin = 30 * time.Second
)

// Node is the edge node that the task makes of its cluster.
type Node struct {
	Own  *spoke.Cluster
	View *hub.View
	// Namespace is where services go by default.
	Namespace string
	// Scoped says that they go nowhere else.
	Scoped bool
}

// New returns the task.
func New(n Node) task.Task {
	return newTask(&teller{Node: n, discovery: n.Own.Client.Discovery(), id: func(ctx context.Context) (string, error) { return clusterID(ctx, n.Own) }})
}

func newTask(t *teller) task.Task {
	const what = "telling the facts of the edge node"
	return task.Task{
		Name: what,
		// Of the cluster it asks what every ServiceAccount may ask.
		Rights: rights.Rights{Hub: rights.Rules{Cluster: []rbacv1.PolicyRule{
			rights.Rule(edgev1alpha1.GroupName, "edgenodes", "get", "create"),
			rights.Rule(edgev1alpha1.GroupName, "edgenodes/status", "update"),
		}}},
		Run: func(ctx context.Context, s task.Session) error {
			if !t.await(ctx) {
				return nil
			}
			loop := &task.Loop{What: what, Interval: func() time.Duration { return interval }, Timeout: 2 * hub.RequestTimeout,
				News: t.View.NodesNews(), Pause: pause, Random: s.Random,
				Do: func(ctx context.Context) error { return hub.Refused(t.look(ctx, s)) }}
			return loop.Run(ctx)
		},
	}
}

// await waits until another task has looked at the nodes, if the agent may: for a while. It says whether there is anything left to do.
func (t *teller) await(ctx context.Context) bool {
	if t.Own.NamespaceScoped || t.View.Nodes() != nil {
		return true
	}
	timer := time.NewTimer(nodesWithin)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.View.NodesNews():
	case <-timer.C:
	}
	return true
}

// look compares the facts that the hub has with those that are, and writes them if they differ.
func (t *teller) look(ctx context.Context, s task.Session) error {
	node, err := t.node(ctx, s)
	if err != nil {
		return err
	}
	facts := t.facts(ctx, node.Status)
	if equality.Semantic.DeepEqual(facts, node.Status) {
		return nil
	}
	facts.ReportTime = new(metav1.Now())
	err = retry.RetryOnConflict(retry.DefaultRetry, func() (err error) {
		if node == nil { // a user has written the spec
			if node, err = t.node(ctx, s); err != nil {
				return err
			}
		}
		next := node.DeepCopy()
		next.Status, node = facts, nil
		_, err = s.Hub.Clusters.EdgeV1alpha1().EdgeNodes().UpdateStatus(ctx, next, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("writing the status of EdgeNode %s: %w", s.State.ClusterName, err)
	}
	return nil
}

// node finds the EdgeNode, or makes it with an empty spec.
func (t *teller) node(ctx context.Context, s task.Session) (*edgev1alpha1.EdgeNode, error) {
	nodes, name := s.Hub.Clusters.EdgeV1alpha1().EdgeNodes(), s.State.ClusterName
	node, err := nodes.Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		return node, nil
	}
	if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading EdgeNode %s: %w", name, err)
	}
	node, err = nodes.Create(ctx, &edgev1alpha1.EdgeNode{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("the hub has no edge nodes: upgrade it, or start the agent without --edge: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("making EdgeNode %s: %w", name, err)
	}
	return node, nil
}
