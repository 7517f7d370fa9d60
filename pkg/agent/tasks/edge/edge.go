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
	// interval is the time between two checks, less a quarter at most. Changes are reported at the next check, except for those of nodes, which
	// trigger one.
	interval = 10 * time.Minute
	// pause is the minimum time between two checks, however much the nodes change.
	pause = time.Minute
	// nodesWithin is the time for which the first check waits for the nodes, so that the first report to the hub has all facts.
	nodesWithin = 30 * time.Second
)

// Node is the edge node of the task's cluster.
type Node struct {
	Own  *spoke.Cluster
	View *hub.View
	// Namespace is the default namespace of services.
	Namespace string
	// Scoped means that services may use no other namespace.
	Scoped bool
}

// New returns the task.
func New(n Node) task.Task {
	return newTask(&teller{Node: n, discovery: n.Own.Client.Discovery(), id: func(ctx context.Context) (string, error) { return clusterID(ctx, n.Own) }})
}

func newTask(t *teller) task.Task {
	const what = "reporting the facts of the edge node"
	return task.Task{
		Name: what,
		// On the cluster it only uses rights of every ServiceAccount.
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
				Do: func(ctx context.Context) error { return hub.Refused(t.sync(ctx, s)) }}
			return loop.Run(ctx)
		},
	}
}

// await waits until another task has read the nodes, if the agent may read them, but no longer than nodesWithin. It returns false if the context has
// ended.
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

// sync compares the facts on the hub with the current ones, and writes them if they differ.
func (t *teller) sync(ctx context.Context, s task.Session) error {
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
		if node == nil { // a user has changed the spec
			node, err = t.node(ctx, s)
			if err != nil {
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

// node returns the EdgeNode, and creates it with an empty spec if it does not exist.
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
		return nil, fmt.Errorf("creating EdgeNode %s: %w", name, err)
	}
	return node, nil
}
