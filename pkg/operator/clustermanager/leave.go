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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/deploy"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/operator/eviction"
	"github.com/clusterhub/clusterhub/pkg/operator/outer"
)

const (
	// hubTime is the share of a reconcile's time that the hub gets. A hub that does not respond until then must not block the other steps and the
	// status.
	hubTime = outer.PassTimeout * 3 / 4

	reasonUnreachable = "HubUnreachable" // the hub does not respond, so what was created there still exists
	reasonGivenUp     = "HubGivenUp"     // what was created on the hub stays there, as the ClusterManager asks for
)

// finalize finalizes a hub in an order in which no step hangs: the APIServices, since no namespace is deleted while one of them is not served; the pods,
// which would recreate what is deleted; the rest of the hub, with the accounts, which invalidates their tokens; and the rest of the management
// cluster with the namespace of the user's Secret. Each step lists the remaining objects, so that the next process continues wherever this one
// stopped.
func (r *reconciler) finalize(ctx context.Context, cm *operatorv1.ClusterManager) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(cm, operatorv1.ClusterManagerFinalizer) {
		return reconcile.Result{}, nil
	}
	management, err := r.management(ctx, cm)
	if err != nil {
		return reconcile.Result{}, err
	}
	there, end := context.WithTimeout(ctx, cmp.Or(r.hubTime, hubTime))
	defer end()
	hub := management
	if cm.IsDetached() {
		hub, err = r.hubOf(ctx, there, cm, management)
	}
	left := ""
	if err == nil {
		left, err = r.removeAll(ctx, there, cm, hub, management)
	}
	if err != nil && nothingApplied(ctx, cm, management) {
		left, err = "", nil
	}
	var theirs *ofHub
	if errors.As(err, &theirs) {
		wait, waitErr := r.unreachable(ctx, cm, theirs)
		if waitErr != nil {
			return reconcile.Result{}, waitErr
		}
		if wait > 0 {
			return reconcile.Result{RequeueAfter: wait}, nil
		}
		left, err = r.removeAll(ctx, there, cm, nil, management)
	}
	if theirs == nil && (err != nil || left != "") { // the hub can be cleaned: the timeout starts over when it fails again
		if err := eviction.Over(ctx, r.client, cm); err != nil {
			return reconcile.Result{RequeueAfter: finalizeInterval}, kit.IgnoreStale(err)
		}
	}
	if err != nil {
		return reconcile.Result{}, errors.Join(err, r.tellLeaving(ctx, cm, operatorv1.ReasonClusterManagerUnavailable, err.Error()))
	}
	if left != "" {
		return reconcile.Result{RequeueAfter: finalizeInterval},
			r.tellLeaving(ctx, cm, operatorv1.ReasonClusterManagerUnavailable, "waiting until it is gone: "+left)
	}
	r.hubs.close(cm.Name)
	_, err = kit.Patch(ctx, r.client, cm, func(cm *operatorv1.ClusterManager) {
		controllerutil.RemoveFinalizer(cm, operatorv1.ClusterManagerFinalizer)
	})
	return reconcile.Result{}, kit.IgnoreStale(err)
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

// hubOf returns the hub that the ClusterManager has written to, or nil if it has not.
func (r *reconciler) hubOf(ctx, there context.Context, cm *operatorv1.ClusterManager, management *side) (*side, error) {
	if cm.Annotations[annotationHub] == "" {
		return nil, nil
	}
	source, err := r.readSourceOf(ctx, cm)
	var problem *kit.Outcome
	if errors.As(err, &problem) {
		return nil, &ofHub{err}
	} else if err != nil {
		return nil, err // not an error of the hub
	}
	connection, err := r.hubs.of(cm.Name, source)
	if err != nil {
		return nil, &ofHub{err}
	}
	hub := newSide("hub", connection.client, kindsWhere(func(k kind) bool { return k.onHub }), management.applier.Owner, connection.cluster.Explain)
	uid, err := identityOf(there, hub)
	if err == nil {
		err = checkHub(cm, uid, management.applier.Owner)
	}
	if err != nil {
		return nil, &ofHub{err}
	}
	return hub, nil
}

// unreachable returns how long to wait for a hub that cannot be cleaned. 0 means that the controller gives up on it.
func (r *reconciler) unreachable(ctx context.Context, cm *operatorv1.ClusterManager, why error) (time.Duration, error) {
	now := r.Clock.Now()
	until, err := eviction.Until(ctx, r.client, cm, now, giveUpAfter)
	if err != nil {
		return finalizeInterval, kit.IgnoreStale(err)
	}
	rest := until.Sub(now)
	if rest <= 0 {
		eviction.GivenUp(r.recorder, cm, reasonGivenUp, "hub", giveUpAfter, why, operatorv1.LabelClusterManager)
		return 0, nil
	}
	return min(rest, 30*time.Second), r.tellLeaving(ctx, cm, reasonUnreachable, fmt.Sprintf(
		"the hub cannot be cleaned up; the operator gives up at %s and leaves the remaining objects there: %v", until.UTC().Format(time.RFC3339), why))
}

// removeKind deletes the objects of one kind, and returns a text about what still exists.
func (r *reconciler) removeKind(ctx context.Context, s *side, k kind) (left string, err error) {
	objects, err := s.list(ctx, k)
	if err != nil || len(objects) == 0 {
		return "", err
	}
	if err := s.remove(ctx, objects); err != nil {
		return "", err
	}
	objects, err = s.list(ctx, k)
	if err != nil || len(objects) == 0 {
		return "", err
	}
	return described(objects[0], s), nil
}

func described(o *unstructured.Unstructured, s *side) string {
	return s.explain(fmt.Errorf("%s %s of the %s", o.GetKind(), o.GetName(), s.name))
}

// removeAll deletes everything, and returns a text about what still exists. A nil hub has no objects, or they are orphaned.
func (r *reconciler) removeAll(ctx, there context.Context, cm *operatorv1.ClusterManager, hub, management *side) (left string, err error) {
	asHubs := func(err error) error {
		if err == nil || hub == management {
			return err
		}
		return &ofHub{err}
	}
	if hub != nil {
		if left, err := r.removeKind(there, hub, apiServices); err != nil || left != "" {
			return left, asHubs(err)
		}
	}
	if left, err := r.removeKind(ctx, management, deployments); err != nil || left != "" {
		return left, err
	}
	if hub != nil {
		if err := removeServingCA(there, hub); err != nil {
			return "", asHubs(err)
		}
		if left, err := removeSide(there, hub); err != nil || left != "" {
			return left, asHubs(err)
		}
	}
	if hub != management {
		if left, err := removeSide(ctx, management); err != nil || left != "" {
			return left, err
		}
	}
	for _, name := range mintedSecrets {
		r.minter.Forget(types.NamespacedName{Namespace: cm.ServerNamespace(), Name: name})
	}
	return "", nil
}

// removeSide deletes everything on a cluster, and returns a text about what still exists.
func removeSide(ctx context.Context, s *side) (left string, err error) {
	objects, err := s.there(ctx)
	if err != nil {
		return "", err
	}
	if err := s.remove(ctx, objects); err != nil {
		return "", err
	}
	objects, err = s.there(ctx)
	if err != nil {
		return "", err
	}
	for _, o := range objects {
		// Deleting a namespace deletes its contents, in its own time.
		if !namespaces.of(o) {
			return described(o, s), nil
		}
	}
	return "", nil
}

// removeServingCA deletes the Secret that hub-apiserver created on the hub, in case the namespace existed before the hub.
func removeServingCA(ctx context.Context, hub *side) error {
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

// tellLeaving writes to the status what the deletion waits for.
func (r *reconciler) tellLeaving(ctx context.Context, cm *operatorv1.ClusterManager, reason, why string) error {
	return kit.IgnoreStale(r.report(ctx, cm, func(cm *operatorv1.ClusterManager) {
		cm.Status.ObservedGeneration = cm.Generation
		setCondition(cm, operatorv1.ConditionClusterManagerAvailable, false, reason, "It is being deleted: "+why)
	}))
}
