// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/remote/mint"
)

// Reconciler reconciles Klusterlets.
type Reconciler struct {
	// klusterlets reads Klusterlets from a cache. If it is indexed, it selects them by the namespaces of their agents.
	klusterlets client.Reader
	indexed     bool
	// client is an uncached client of the management cluster.
	client client.Client
	config *rest.Config
	// managementUID is the UID of the namespace kube-system of the management cluster.
	managementUID string
	minter        *mint.Keeper
	connections   *connections
	// observations has the observed state of the management cluster.
	observations *observations
	recorder     events.EventRecorder
	clock        clock.PassiveClock
	// image is the image of agents whose Klusterlet names none.
	image string
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	// Before the read: events from now on may not be part of what is read.
	r.observations.begin(request.Name)
	defer r.observations.end(request.Name)
	k := &operatorv1.Klusterlet{}
	if err := r.klusterlets.Get(ctx, request.NamespacedName, k); err != nil {
		if apierrors.IsNotFound(err) {
			r.connections.drop(request.Name)
			r.observations.drop(request.Name)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	p := r.newPass(k.DeepCopy())
	result, err := p.reconcile(ctx)
	p.recordKlusterlet()
	return result, err
}
