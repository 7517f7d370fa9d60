// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package status is the task that tells the hub of the cluster: what it has and whether it is well, and what other tasks report. It
// is the only one that reads and writes the ManagedCluster.
package status

import (
	"context"
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"

	"github.com/clusterhub/clusterhub/pkg/agent/hub"
	"github.com/clusterhub/clusterhub/pkg/agent/repeat"
	"github.com/clusterhub/clusterhub/pkg/agent/rights"
	"github.com/clusterhub/clusterhub/pkg/agent/spoke"
	"github.com/clusterhub/clusterhub/pkg/agent/task"
	clusterv1 "github.com/clusterhub/clusterhub/pkg/apis/cluster/v1"
	"github.com/clusterhub/clusterhub/pkg/registration"
)

// pause is the shortest time between two looks at the status, however much the cluster changes.
const pause = 5 * time.Second

// Options are what the task works with.
type Options struct {
	View *hub.View
	// Cluster is what the agent is told to say of its cluster.
	Cluster *hub.Cluster
	// Version is that of the agent, empty if it is not known.
	Version string
	// Facts are what is seen of the agent's own cluster.
	Facts Facts
	// Anew makes a cluster again that is not on the hub any more. Without it that is left to others.
	Anew func(context.Context) error
	// Refused is told how the hub refuses the agent, one of registration's refusals, or "", at each look that shows it.
	Refused func(ctx context.Context, refusal string) error
	// NamespaceScoped says that the agent has rights in one namespace of the cluster alone.
	NamespaceScoped bool
}

// New returns the task. It is one for the whole process, whatever the number of its sessions.
func New(o Options) task.Task {
	t := &reporter{Options: o, view: o.View}
	needs := rights.Sum(spoke.IDRights(o.NamespaceScoped), rights.Rights{Hub: rights.Rules{Cluster: []rbacv1.PolicyRule{
		rights.Rule(clusterv1.GroupName, "managedclusters", "get", "update"),
		rights.Rule(clusterv1.GroupName, "managedclusters/status", "patch"),
	}}})
	if !o.NamespaceScoped {
		needs.Own.Cluster = append(needs.Own.Cluster, rights.Rule("", "nodes", "list", "watch"),
			rights.Rule(clusterClaims.Group, clusterClaims.Resource, "list"))
	}
	return task.Task{Name: "updating the status", Rights: needs, Run: t.run}
}

type reporter struct {
	Options
	view *hub.View
	said repeat.Said
	// unseen is how many looks in a row have not been let see the cluster.
	unseen int
}

func (t *reporter) run(ctx context.Context, s task.Session) error {
	stop, err := t.Facts.Start(ctx, t.view.Changed)
	if err != nil {
		return fmt.Errorf("watching the nodes: %w", err)
	}
	defer stop()
	loop := &task.Loop{What: "updating the status", Interval: t.view.Interval, Timeout: 2 * hub.RequestTimeout,
		News: t.view.News(), Pause: pause, Random: s.Random,
		Do: func(ctx context.Context) error {
			// The hub writes conditions too.
			return hub.Refused(retry.RetryOnConflict(retry.DefaultRetry, func() error { return t.look(ctx, s) }))
		}}
	return loop.Run(ctx)
}

// look compares what the hub has with what is, and writes the difference.
func (t *reporter) look(ctx context.Context, s task.Session) error {
	clusters := s.Hub.Clusters.ClusterV1().ManagedClusters()
	cluster, err := clusters.Get(ctx, s.State.ClusterName, metav1.GetOptions{})
	if unknown := apierrors.IsForbidden(err) || apierrors.IsNotFound(err); unknown && !t.view.Seen() && t.Anew != nil {
		if err := t.Anew(ctx); err != nil {
			return err
		}
		t.view.See()
	}
	t.tellRefusal(ctx, cluster, err)
	if err != nil {
		return err
	}
	t.view.See()
	t.view.SetLease(cluster.Spec.LeaseDurationSeconds)
	t.warnOfClock(ctx, cluster)
	// That the cluster itself may not be changed is no reason to leave the hub without a status.
	updated, err := t.update(ctx, s, cluster)
	t.said.Result(ctx, "updating the cluster", err)
	if apierrors.IsConflict(err) {
		return err
	}
	if err == nil {
		cluster = updated
	}
	observed := t.Facts.Observe(ctx)
	// Of a cluster that does not answer, nothing is known.
	if observed.Unhealthy == nil {
		t.view.SeeNodes(observed.Nodes)
		t.view.AskNamespaces(asked(cluster))
	}
	observed.Claims = withAgents(observed.Claims, registration.AgentClaims(t.Version, s.Hub.CA))
	patch, err := statusPatch(cluster, t.nextStatus(cluster.Status, observed))
	if err != nil || patch == nil {
		return err
	}
	_, err = clusters.Patch(ctx, cluster.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("writing the status of ManagedCluster %s: %w", cluster.Name, err)
	}
	return nil
}

// unseenLooks is how many looks in a row have to show that the hub does not let the agent see the cluster: for a moment that is so when a
// cluster has just been accepted, before the agent's rights are there.
const unseenLooks = 3

// tellRefusal tells how the hub refuses the agent, by what became of reading the cluster. That its identity is not known is no matter of this
// task: the session ends by it.
func (t *reporter) tellRefusal(ctx context.Context, cluster *clusterv1.ManagedCluster, err error) {
	refusal := ""
	switch {
	case t.Refused == nil:
		return
	case err == nil:
		t.unseen = 0
		if !cluster.Spec.HubAcceptsClient {
			refusal = registration.RefusalNotAccepted
		}
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		if t.unseen++; t.unseen < unseenLooks {
			return
		}
		refusal = registration.RefusalNoCluster
	default:
		return
	}
	t.said.Result(ctx, "remembering whether the hub refuses this agent", t.Refused(ctx, refusal))
}

// update brings the cluster itself up to date with the agent's own rights.
func (t *reporter) update(ctx context.Context, s task.Session, cluster *clusterv1.ManagedCluster) (*clusterv1.ManagedCluster, error) {
	next, changed := t.Cluster.Update(cluster)
	if !changed {
		return next, nil
	}
	updated, err := s.Hub.Clusters.ClusterV1().ManagedClusters().Update(ctx, next, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("updating ManagedCluster %s: %w", cluster.Name, err)
	}
	return updated, nil
}

// asked are the namespaces that the hub asks for. One that has denied the cluster, or is giving it up, asks for none any more.
func asked(cluster *clusterv1.ManagedCluster) (names []string) {
	if !cluster.Spec.HubAcceptsClient || !cluster.DeletionTimestamp.IsZero() {
		return nil
	}
	for _, namespace := range cluster.Status.ManagedNamespaces {
		names = append(names, namespace.Name)
	}
	return names
}

func (t *reporter) warnOfClock(ctx context.Context, cluster *clusterv1.ManagedCluster) {
	text := ""
	if c := meta.FindStatusCondition(cluster.Status.Conditions, registration.ConditionClockSynced); c != nil &&
		c.Status == metav1.ConditionFalse {
		text = c.Message
	}
	if t.said.Again("clock", text) && text != "" {
		klog.FromContext(ctx).Info("The hub says that this cluster's clock is wrong", "message", text)
	}
}
