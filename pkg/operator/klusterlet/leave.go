// Copyright The Clusterhub Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	operatorv1 "github.com/clusterhub/clusterhub/pkg/apis/operator/v1"
	"github.com/clusterhub/clusterhub/pkg/kit"
	"github.com/clusterhub/clusterhub/pkg/operator/eviction"
	"github.com/clusterhub/clusterhub/pkg/operator/outer"
	"github.com/clusterhub/clusterhub/pkg/remote"
)

const (
	// givenUpAfter is the time after which the controller gives up on a managed cluster that cannot be cleaned.
	givenUpAfter = 5 * time.Minute
	// finalizeInterval is the interval between retries until then, and between checks of a condition that no watch reports. For the time young after the
	// deletion the interval is finalizeSoon: most deletions take no longer.
	finalizeInterval = 10 * time.Second
	finalizeSoon     = time.Second
	young            = 30 * time.Second

	reasonCleaning    = "KlusterletCleaningUp"      // what was created on the managed cluster is being deleted
	reasonUnreachable = "ManagedClusterUnreachable" // the managed cluster does not respond, so what was created there still exists
	reasonGivenUp     = "ManagedClusterGivenUp"     // what was created on the managed cluster stays there, as the Klusterlet asks for
)

// waitsFor returns the Outcome of a deletion that is in progress.
func waitsFor(format string, args ...any) error {
	return kit.Outcomef(reasonCleaning, "waits for "+format, args...)
}

// finalize finalizes a Klusterlet: first it deletes the pods, since they would recreate what is deleted, then what is on the managed cluster, then the
// rest, with the namespace at the end. Each step is idempotent and starts from the current state, since the process may end at any point.
func (r *Reconciler) finalize(ctx context.Context, k *operatorv1.Klusterlet) (reconcile.Result, error) {
	hosted := controllerutil.ContainsFinalizer(k, operatorv1.KlusterletHostedFinalizer)
	if !hosted && !controllerutil.ContainsFinalizer(k, operatorv1.KlusterletFinalizer) {
		return reconcile.Result{}, nil
	}
	objects := r.all(k)
	r.want(k, objects)
	// In the foreground: a Deployment exists until its pods are gone.
	left, err := r.here(k).remove(ctx, podsOf(objects), metav1.DeletePropagationForeground)
	if err == nil && len(left) > 0 {
		err = waitsFor("the deletion of the pods of %s", left[0])
	}
	if err == nil && hosted {
		err = r.finalizeManaged(ctx, k, objects)
	}
	if err == nil {
		if err = r.finalizer(ctx, k, operatorv1.KlusterletHostedFinalizer, false); err == nil {
			err = r.finalizeHere(ctx, k, objects)
		}
	}
	if err != nil {
		return r.stays(ctx, k, err)
	}
	r.outsides.drop(k.Name)
	return reconcile.Result{}, r.finalizer(ctx, k, operatorv1.KlusterletFinalizer, false)
}

func podsOf(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool { return o.GetKind() != deployments.Kind })
}

// all returns the objects that may exist, in the order of deletion.
func (r *Reconciler) all(k *operatorv1.Klusterlet) []*unstructured.Unstructured {
	resources := slices.Clone(k.Status.RelatedResources)
	if p, err := planOf(k, r.image); err == nil { // otherwise nothing more was ever created
		for _, resource := range p.inventory() {
			if !slices.Contains(resources, resource) {
				resources = append(resources, resource)
			}
		}
	}
	return objectsOf(resources)
}

// finalizeManaged deletes what is on a managed cluster elsewhere. After a while it gives up on a cluster that cannot be cleaned.
func (r *Reconciler) finalizeManaged(ctx context.Context, k *operatorv1.Klusterlet, objects []*unstructured.Unstructured) error {
	secrets, err := r.secrets(ctx, k)
	if err != nil {
		return err // not an error of the managed cluster
	}
	err = r.cleanManaged(ctx, k, secrets, objects)
	if apierrors.IsConflict(err) { // the cluster responded
		err = waitsFor("other clients that write the objects to delete on the managed cluster: %v", err)
	}
	var out *kit.Outcome
	if err == nil || errors.As(err, &out) {
		return errors.Join(requeueStale(eviction.Over(ctx, r.client, k)), err)
	}
	now := r.clock.Now()
	until, markErr := eviction.Until(ctx, r.client, k, now, givenUpAfter)
	if markErr != nil {
		return requeueStale(markErr)
	}
	if now.Before(until) {
		return &kit.Outcome{Reason: reasonUnreachable, RequeueAfter: until.Sub(now), Message: fmt.Sprintf(
			"the managed cluster cannot be cleaned up; the operator gives up at %s: %v", until.UTC().Format(time.RFC3339), err)}
	}
	eviction.GivenUp(r.recorder, k, reasonGivenUp, "managed cluster", givenUpAfter, err, operatorv1.LabelKlusterlet)
	return nil
}

// cleanManaged deletes what is on a managed cluster elsewhere, as its admin.
func (r *Reconciler) cleanManaged(ctx context.Context, k *operatorv1.Klusterlet, secrets given, objects []*unstructured.Unstructured) error {
	source, err := secrets.source()
	if err != nil {
		r.outsides.drop(k.Name)
		return err
	}
	via, err := r.outsides.get(k, r.management, source)
	if err != nil {
		return err
	}
	via.settled.Store(nil)
	ctx, cancel := context.WithTimeout(ctx, outer.PassTimeout)
	defer cancel()
	same, err := via.isCluster(ctx, r.management)
	if err != nil {
		return err
	}
	if same {
		// The namespace has the source. It is deleted last, with the rest of this cluster: without the source, the next process could not continue.
		objects = slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool {
			return o.GetKind() == namespaces.Kind && o.GetName() == k.AgentNamespace()
		})
	}
	// Rights are deleted first, so that a pod that could not be deleted has none.
	there := r.there(k, via)
	own, common := apart(objects, isOnManagedObject)
	if err := r.removeAll(ctx, there, own); err != nil {
		return err
	}
	if err := r.withdrawWorks(ctx, k, there, via); err != nil {
		return err
	}
	return r.removeAll(ctx, there, common)
}

// finalizeHere deletes what is on the cluster that runs the pods: everything, in the modes with one cluster.
func (r *Reconciler) finalizeHere(ctx context.Context, k *operatorv1.Klusterlet, objects []*unstructured.Unstructured) error {
	here := r.here(k)
	if !k.IsDetached() {
		// This uses the rights of the agent, which are deleted after it.
		if err := r.withdrawWorks(ctx, k, here, nil); err != nil {
			return err
		}
	}
	own, common := apart(objects, func(*unstructured.Unstructured) bool { return true })
	if err := r.removeAll(ctx, here, own); err != nil {
		return err
	}
	names := []string{operatorv1.ExternalManagedKubeconfigRegistration, operatorv1.ExternalManagedKubeconfigWork, operatorv1.ExternalManagedKubeconfigAgent}
	// A copy of a Klusterlet has its finalizers, and may have its namespace. It was rejected, so the identity in the namespace is not its own.
	var others *taken
	if err := r.alone(ctx, k); err == nil {
		names = append(names, operatorv1.HubKubeconfigSecret)
	} else if !errors.As(err, &others) {
		return err
	}
	for _, name := range names {
		if err := r.removeSecret(ctx, k, name); err != nil {
			return err
		}
	}
	return r.removeAll(ctx, here, common)
}

// removeSecret deletes minted Secrets, and the identity on the hub. The user's Secrets are only deleted with the namespace.
func (r *Reconciler) removeSecret(ctx context.Context, k *operatorv1.Klusterlet, name string) error {
	key := types.NamespacedName{Namespace: k.AgentNamespace(), Name: name}
	secret := &corev1.Secret{}
	if err := r.client.Get(ctx, key, secret); err != nil {
		return client.IgnoreNotFound(err)
	}
	if name != operatorv1.HubKubeconfigSecret && !ownerOf(k, r.management).Owns(secret) {
		return nil
	}
	r.minter.Forget(key)
	return client.IgnoreNotFound(r.client.Delete(ctx, secret, client.Preconditions{UID: &secret.UID}))
}

// removeAll deletes objects, and returns an error while those exist that belong to the Klusterlet alone.
func (r *Reconciler) removeAll(ctx context.Context, from *cluster, objects []*unstructured.Unstructured) error {
	own, common := apart(objects, func(*unstructured.Unstructured) bool { return true })
	left, err := from.remove(ctx, own, metav1.DeletePropagationBackground)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return waitsFor("the deletion of %s, which has finalizers", joined(left))
	}
	for _, o := range common {
		if err := from.unshare(ctx, o); err != nil {
			return failed(idOf(o), from.explained(err))
		}
	}
	return nil
}

func joined(ids []remote.ID) string {
	var texts []string
	for _, id := range ids {
		texts = append(texts, id.String())
	}
	return strings.Join(texts, ", ")
}

func idOf(o *unstructured.Unstructured) remote.ID { return remote.IDOf(o) }

func idsOf(objects []*unstructured.Unstructured) (ids []remote.ID) {
	for _, o := range objects {
		ids = append(ids, idOf(o))
	}
	return ids
}

// apart splits objects into those that belong to the Klusterlet alone, and for which may returns true, and those that are shared.
func apart(objects []*unstructured.Unstructured, may func(*unstructured.Unstructured) bool) (own, common []*unstructured.Unstructured) {
	for _, o := range objects {
		switch {
		case isShared(o):
			common = append(common, o)
		case may(o):
			own = append(own, o)
		}
	}
	return own, common
}

func isOnManagedObject(o *unstructured.Unstructured) bool {
	return isOnManaged(kind{GroupVersionKind: o.GroupVersionKind()})
}

// stays reports why a Klusterlet that is being deleted still exists. Errors are retried at the same interval: they may be about the last object to
// wait for, and no watch reports when they end.
func (r *Reconciler) stays(ctx context.Context, k *operatorv1.Klusterlet, why error) (reconcile.Result, error) {
	var out *kit.Outcome
	if errors.As(why, &out) && out.Reason == "" {
		return reconcile.Result{}, why
	}
	s := newReport(k)
	reason, after := operatorv1.ReasonKlusterletApplyFailed, finalizeInterval
	if r.clock.Since(k.DeletionTimestamp.Time) < young {
		after = finalizeSoon
	}
	switch {
	case out != nil && out.RequeueAfter > 0:
		reason, after = out.Reason, max(time.Second, min(after, out.RequeueAfter))
	case out != nil:
		reason = out.Reason
	case !apierrors.IsConflict(why):
		ctrl.LoggerFrom(ctx).Error(why, "The Klusterlet is being deleted, and some objects cannot be deleted yet")
	}
	s.applied(reason, why)
	s.unavailable(reason, "the Klusterlet is being deleted: "+why.Error())
	return reconcile.Result{RequeueAfter: after}, r.write(ctx, k, s)
}
