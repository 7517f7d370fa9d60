// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/remote/leave"
	"github.com/clusterhub/clusterhub/pkg/remote/reach"
)

const (
	// hubTime is the share of a reconcile's time that the hub has. A hub that does not respond until then must not block the other steps and the
	// status.
	hubTime = reach.PassTimeout * 3 / 4

	reasonUnreachable = "HubUnreachable" // the hub does not respond, so the objects there still exist
	reasonGivenUp     = "HubGivenUp"     // the objects on the hub are orphaned
)

// finalize deletes a hub in an order in which no step hangs: the APIServices, since no namespace is deleted while one of them is not served; the pods,
// which would recreate what is deleted; the rest of the hub, with the accounts, which invalidates their tokens; and the rest of the management
// cluster with the namespace of the user's Secret. Each step lists the remaining objects, so that the next process continues wherever this one
// stopped.
func (p *pass) finalize(ctx context.Context) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(p.cm, operatorv1.ClusterManagerFinalizer) {
		return reconcile.Result{}, nil
	}
	var err error
	p.management, err = p.managementOf(ctx, p.cm)
	if err != nil {
		return reconcile.Result{}, err
	}
	hubCtx, cancel := context.WithTimeout(ctx, cmp.Or(p.hubTime, hubTime))
	defer cancel()
	p.hub = p.management
	if p.cm.IsDetached() {
		err = p.findHub(ctx, hubCtx)
	}
	if err == nil {
		err = p.deleteObjects(ctx, hubCtx)
	}
	if err != nil && !isRemaining(err) && nothingApplied(ctx, p.cm, p.management) {
		err = nil
	}
	var hubErr *ofHub
	if errors.As(err, &hubErr) {
		wait, waitErr := p.awaitHub(ctx, hubErr)
		if waitErr != nil {
			return reconcile.Result{}, waitErr
		}
		if wait > 0 {
			return reconcile.Result{RequeueAfter: wait}, nil
		}
		p.hub = nil
		err = p.deleteObjects(ctx, hubCtx)
	}
	if hubErr == nil && err != nil { // the hub can be cleaned: the timeout starts over when it fails again
		if err := leave.Over(ctx, p.client, p.cm); err != nil {
			return reconcile.Result{RequeueAfter: finalizeInterval}, kit.IgnoreStale(err)
		}
	}
	switch {
	case isRemaining(err):
		return reconcile.Result{RequeueAfter: finalizeInterval}, p.reportFinalizing(ctx, operatorv1.ReasonClusterManagerUnavailable, err.Error())
	case err != nil:
		return reconcile.Result{}, errors.Join(err, p.reportFinalizing(ctx, operatorv1.ReasonClusterManagerUnavailable, err.Error()))
	}
	p.hubs.Close(p.cm.Name)
	_, err = kit.Patch(ctx, p.client, p.cm, func(cm *operatorv1.ClusterManager) {
		controllerutil.RemoveFinalizer(cm, operatorv1.ClusterManagerFinalizer)
	})
	return reconcile.Result{}, kit.IgnoreStale(err)
}

// deleteObjects deletes everything on both clusters. hubCtx limits the requests to the hub. Without a hub, that has no objects or they are orphaned.
func (p *pass) deleteObjects(ctx, hubCtx context.Context) error {
	steps := []struct {
		name string
		ctx  context.Context
		side *side
		do   func(context.Context, *side) error
	}{
		{"delete the APIServices", hubCtx, p.hub, deleteAPIServices},
		{"delete the Deployments", ctx, p.management, deleteDeployments},
		{"delete the CA of hub-apiserver", hubCtx, p.hub, deleteServingCA},
		{"delete the objects of the hub", hubCtx, p.hub, deleteRest},
		{"delete the objects of the management cluster", ctx, p.management, deleteRest},
	}
	if p.hub == p.management {
		steps = steps[:len(steps)-1]
	}
	for _, s := range steps {
		if s.side == nil {
			continue
		}
		err := s.do(s.ctx, s.side)
		if err == nil {
			continue
		}
		ctrl.LoggerFrom(ctx).V(2).Info("Waiting for a step", "step", s.name, "reason", err.Error())
		if s.side != p.management && !isRemaining(err) {
			return &ofHub{err}
		}
		return err
	}
	for _, name := range mintedSecrets {
		p.minter.Forget(types.NamespacedName{Namespace: p.cm.ServerNamespace(), Name: name})
	}
	return nil
}

// nothingApplied reports whether a hub on the own cluster was never started, although hub-operator may not list all kinds: it could not have created
// the first objects either. What hub-operator may list without the rights of an admin must be gone.
func nothingApplied(ctx context.Context, cm *operatorv1.ClusterManager, own *side) bool {
	if cm.IsDetached() || cm.Annotations[annotationHub] != "" || meta.IsStatusConditionTrue(cm.Status.Conditions, operatorv1.ConditionClusterManagerApplied) {
		return false
	}
	forbidden := false
	for _, k := range own.kinds {
		if k == secrets {
			continue // a hub on the own cluster has none of these
		}
		objects, err := own.read(ctx, k)
		switch {
		case apierrors.IsForbidden(err) && !k.onManagement:
			forbidden = true
		case err != nil || len(objects) > 0:
			return false
		}
	}
	return forbidden
}

// ofHub is an error on the hub's side: the hub rejects a request, does not respond, or cannot be reached. Any such error, and no other, lets the
// controller give up on the hub after a while.
type ofHub struct{ err error }

func (h *ofHub) Error() string { return h.err.Error() }

// findHub connects to the hub that the ClusterManager has written to. There is no hub if it has not written to one.
func (p *pass) findHub(ctx, hubCtx context.Context) error {
	p.hub = nil
	if p.cm.Annotations[annotationHub] == "" {
		return nil
	}
	err := p.readSource(ctx)
	var invalid *kit.Outcome
	if err != nil && !errors.As(err, &invalid) {
		return err // not an error of the hub
	}
	if err == nil {
		err = p.connect(ctx)
	}
	if err == nil {
		_, err = p.checkIdentity(hubCtx)
	}
	if err != nil {
		p.hub = nil
		return &ofHub{err}
	}
	return nil
}

// awaitHub returns how long to wait for a hub that cannot be cleaned. 0 means that the controller gives up on it.
func (p *pass) awaitHub(ctx context.Context, why error) (time.Duration, error) {
	now := p.Clock.Now()
	until, err := leave.Until(ctx, p.client, p.cm, now, giveUpAfter)
	if err != nil {
		return finalizeInterval, kit.IgnoreStale(err)
	}
	rest := until.Sub(now)
	if rest <= 0 {
		leave.RecordGivingUp(p.recorder, p.cm, reasonGivenUp, "hub", giveUpAfter, why, operatorv1.LabelClusterManager)
		return 0, nil
	}
	return min(rest, 30*time.Second), p.reportFinalizing(ctx, reasonUnreachable, fmt.Sprintf(
		"the hub cannot be cleaned up; the operator gives up at %s and leaves the remaining objects there: %v", until.UTC().Format(time.RFC3339), why))
}

// remaining returns an Outcome for an object that still exists.
func remaining(o *unstructured.Unstructured, s *side) error {
	return kit.Outcomef(operatorv1.ReasonClusterManagerUnavailable, "waiting until it is gone: %s",
		s.explain(fmt.Errorf("%s %s of the %s", o.GetKind(), o.GetName(), s.name)))
}

// isRemaining reports whether an error reports an object that still exists.
func isRemaining(err error) bool {
	var out *kit.Outcome
	return errors.As(err, &out)
}

func deleteAPIServices(ctx context.Context, s *side) error { return deleteKind(ctx, s, apiServices) }

func deleteDeployments(ctx context.Context, s *side) error { return deleteKind(ctx, s, deployments) }

// deleteKind deletes the objects of one kind, and waits until none exists.
func deleteKind(ctx context.Context, s *side, k kind) error {
	objects, err := s.list(ctx, k)
	if err != nil || len(objects) == 0 {
		return err
	}
	if err := s.delete(ctx, objects); err != nil {
		return err
	}
	objects, err = s.list(ctx, k)
	if err != nil || len(objects) == 0 {
		return err
	}
	return remaining(objects[0], s)
}

// deleteRest deletes everything on a cluster, and waits until nothing exists.
func deleteRest(ctx context.Context, s *side) error {
	objects, err := s.observed(ctx)
	if err != nil {
		return err
	}
	if err := s.delete(ctx, objects); err != nil {
		return err
	}
	objects, err = s.observed(ctx)
	if err != nil {
		return err
	}
	for _, o := range objects {
		// Deleting a namespace deletes its contents, in its own time.
		if !namespaces.of(o) {
			return remaining(o, s)
		}
	}
	return nil
}

// deleteServingCA deletes the Secret that hub-apiserver created on the hub, in case the namespace existed before the hub.
func deleteServingCA(ctx context.Context, hub *side) error {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(secrets.GroupVersionKind)
	key := client.ObjectKey{Namespace: deploy.ManagerNamespace, Name: deploy.ServingCASecret}
	if err := hub.client.Get(ctx, key, o); err != nil {
		if kit.IsGone(err) {
			return nil
		}
		return hub.failed("reading", "Secret "+key.String(), err)
	}
	if o.GetLabels()[deploy.LabelManagedBy] != deploy.APIServer {
		return nil
	}
	uid := o.GetUID()
	if err := hub.client.Delete(ctx, o, client.Preconditions{UID: &uid}); kit.IgnoreGone(err) != nil {
		return hub.failed("removing", "Secret "+key.String(), err)
	}
	return nil
}

// reportFinalizing writes to the status what the deletion waits for.
func (p *pass) reportFinalizing(ctx context.Context, reason, why string) error {
	return kit.IgnoreStale(p.report(ctx, func(cm *operatorv1.ClusterManager) {
		cm.Status.ObservedGeneration = cm.Generation
		setCondition(cm, operatorv1.ConditionClusterManagerAvailable, false, reason, "It is being deleted: "+why)
	}))
}
