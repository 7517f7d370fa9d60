// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterscheduler grants ClusterRequests: it gives each an existing Cluster, or a new one.
//
// A request has a Cluster if the Cluster has a finalizer with the UID of the request. This is the source of truth; the status of the request
// follows it. The finalizer is added by the write that creates the Cluster, or by one that is conditional on the version on which the decision was
// based. So whenever a process ends, the next one finds what the request has, and no Cluster is ever given to more requests than may have it.
//
// The scheduler decides from its cache. It decides on one request after another, and waits until the cache has what was written, so that each
// decision is based on those before it.
package clusterscheduler

import (
	"context"
	"math/rand/v2"
	"time"

	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterhub/clusterhub/pkg/apis/openmcp/v1alpha1"
	"github.com/clusterhub/clusterhub/pkg/kit"
)

const (
	// ConditionGranted of a ClusterRequest has the reason why it is granted, denied, or still pending.
	ConditionGranted = "Granted"

	// Reasons of the condition, in addition to those of openMCP.
	reasonGranted             = "ClusterGranted"            // the request has a Cluster
	reasonClusterRejected     = "ClusterRejected"           // the API server refused the Cluster that was created for the request; the message says why
	reasonWaitingForDeletion  = "WaitingForClusterDeletion" // the request is deleted when its Cluster is gone
	reasonClusterBeingDeleted = "ClusterBeingDeleted"       // the Cluster of the request is being deleted

	// retryInterval is the delay until a decision is made again after a conflict.
	retryInterval = 200 * time.Millisecond
	// cacheTimeout is the maximum time until a write is in the cache.
	cacheTimeout = 10 * time.Second
)

// Reconciler reconciles one ClusterRequest.
type Reconciler struct {
	client client.Client
	// live does not read from the cache.
	live   client.Reader
	config func() *Config
	// recorder records events about requests.
	recorder events.EventRecorder
	// pick returns a number below n.
	pick func(n int) int
}

var _ reconcile.Reconciler = &Reconciler{}

func newReconciler(c client.Client, live client.Reader, config func() *Config, recorder events.EventRecorder) *Reconciler {
	return &Reconciler{client: c, live: live, config: config, recorder: recorder, pick: rand.IntN}
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	p := &pass{Reconciler: r, config: r.config(), request: &v1alpha1.ClusterRequest{}}
	if err := r.client.Get(ctx, req.NamespacedName, p.request); err != nil {
		return reconcile.Result{}, kit.IgnoreGone(err)
	}
	p.definition = p.config.PurposeMappings[p.request.Spec.Purpose]
	return p.reconcile(ctx)
}
