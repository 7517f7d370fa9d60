// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package status implements the task that reports the cluster to the hub: its resources and its health, and what other tasks report. It is the only
// task that reads and writes the ManagedCluster.
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

// pause is the minimum time between two checks of the status, however much the cluster changes.
const pause = 5 * time.Second

// Options configure the task.
type Options struct {
	View *hub.View
	// Cluster is the configuration of the ManagedCluster.
	Cluster *hub.ClusterConfig
	// Version is the version of the agent; empty if it is not known.
	Version string
	// Facts observe the agent's own cluster.
	Facts Facts
	// Recreate creates the ManagedCluster again if it no longer exists on the hub. If it is nil, the task does not create it.
	Recreate func(context.Context) error
	// Refused is called with how the hub refuses the agent, one of registration's refusals, or "", after each read that shows it.
	Refused func(ctx context.Context, refusal string) error
	// NamespaceScoped means that the agent has rights in one namespace of the cluster alone.
	NamespaceScoped bool
}

// New returns the task. One task serves all sessions of the process.
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
	// unseen is the number of consecutive reads in which the hub has hidden the ManagedCluster.
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
			return hub.Refused(retry.RetryOnConflict(retry.DefaultRetry, func() error { return t.sync(ctx, s) }))
		}}
	return loop.Run(ctx)
}

// sync compares the ManagedCluster on the hub with its desired state, and writes the difference.
func (t *reporter) sync(ctx context.Context, s task.Session) error {
	clusters := s.Hub.Clusters.ClusterV1().ManagedClusters()
	cluster, err := clusters.Get(ctx, s.State.ClusterName, metav1.GetOptions{})
	if unknown := apierrors.IsForbidden(err) || apierrors.IsNotFound(err); unknown && !t.view.Seen() && t.Recreate != nil {
		if err := t.Recreate(ctx); err != nil {
			return err
		}
		t.view.SetSeen()
	}
	t.reportRefusal(ctx, cluster, err)
	if err != nil {
		return err
	}
	t.view.SetSeen()
	t.view.SetLease(cluster.Spec.LeaseDurationSeconds)
	t.warnOfClock(ctx, cluster)
	// The status is written even if the ManagedCluster itself may not be changed.
	updated, err := t.update(ctx, s, cluster)
	t.said.Result(ctx, "updating the cluster", err)
	if apierrors.IsConflict(err) {
		return err
	}
	if err == nil {
		cluster = updated
	}
	observed := t.Facts.Observe(ctx)
	// Nothing is known of a cluster that does not respond.
	if observed.Unhealthy == nil {
		t.view.SetNodes(observed.Nodes)
		t.view.RequestNamespaces(requestedNamespaces(cluster))
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

// unseenSyncs is the number of consecutive reads after which a hidden ManagedCluster counts as a refusal: it may be hidden for a moment after the
// cluster was accepted, before the agent has its rights.
const unseenSyncs = 3

// reportRefusal reports how the hub refuses the agent, according to the read of the ManagedCluster. It ignores that the identity is not known, since
// the lease task ends the session for that.
func (t *reporter) reportRefusal(ctx context.Context, cluster *clusterv1.ManagedCluster, err error) {
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
		t.unseen++
		if t.unseen < unseenSyncs {
			return
		}
		refusal = registration.RefusalNoCluster
	default:
		return
	}
	t.said.Result(ctx, "recording whether the hub refuses this agent", t.Refused(ctx, refusal))
}

// update updates the ManagedCluster itself with the agent's own rights.
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

// requestedNamespaces returns the namespaces that the hub asks for. A hub that has denied the cluster, or is deleting it, asks for none.
func requestedNamespaces(cluster *clusterv1.ManagedCluster) (names []string) {
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
		klog.FromContext(ctx).Info("The hub reports that this cluster's clock is wrong", "message", text)
	}
}
