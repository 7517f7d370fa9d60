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
	"github.com/clusterhub/clusterhub/pkg/operator/eviction"
	"github.com/clusterhub/clusterhub/pkg/operator/outer"
	"github.com/clusterhub/clusterhub/pkg/remote"
)

const (
	// givenUpAfter is how long a managed cluster that cannot be cleaned is waited for.
	givenUpAfter = 5 * time.Minute
	// lookAgain is how often it is tried meanwhile, and how often something is looked at that is waited for and tells of no change. In the
	// first time after the deletion, young, it is lookSoon: most of it takes no longer.
	lookAgain = 10 * time.Second
	lookSoon  = time.Second
	young     = 30 * time.Second

	reasonCleaning    = "KlusterletCleaningUp"      // what was made on the managed cluster is being taken away
	reasonUnreachable = "ManagedClusterUnreachable" // the managed cluster does not answer, so what was made there is still there
	reasonGivenUp     = "ManagedClusterGivenUp"     // what was made on the managed cluster is left there, as the Klusterlet asks for
)

// waiting is that something goes on by itself.
type waiting struct{ what string }

func (w *waiting) Error() string { return "waits for " + w.what }

// leave takes away what was made for a Klusterlet that is being deleted: first the pods, since they would bring again what is taken away,
// then what is on the managed cluster, then the rest, with the namespace at the end. Each step can be repeated, and begins with what is
// there: the process may end anywhere.
func (r *Reconciler) leave(ctx context.Context, k *operatorv1.Klusterlet) (reconcile.Result, error) {
	hosted := controllerutil.ContainsFinalizer(k, operatorv1.KlusterletHostedFinalizer)
	if !hosted && !controllerutil.ContainsFinalizer(k, operatorv1.KlusterletFinalizer) {
		return reconcile.Result{}, nil
	}
	objects := r.all(k)
	r.want(k, objects)
	// In the foreground: a Deployment is there until its pods are gone.
	left, err := r.here(k).remove(ctx, podsOf(objects), metav1.DeletePropagationForeground)
	if err == nil && len(left) > 0 {
		err = &waiting{fmt.Sprintf("the end of the pods of %s", left[0])}
	}
	if err == nil && hosted {
		err = r.leaveManaged(ctx, k, objects)
	}
	if err == nil {
		if err = r.finalizer(ctx, k, operatorv1.KlusterletHostedFinalizer, false); err == nil {
			err = r.leaveHere(ctx, k, objects)
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

// all are the objects that there may be, in the order in which they are taken away.
func (r *Reconciler) all(k *operatorv1.Klusterlet) []*unstructured.Unstructured {
	resources := slices.Clone(k.Status.RelatedResources)
	if p, err := planOf(k, r.image); err == nil { // else nothing more was ever made
		for _, resource := range p.inventory() {
			if !slices.Contains(resources, resource) {
				resources = append(resources, resource)
			}
		}
	}
	return objectsOf(resources)
}

// leaveManaged takes away what is on a managed cluster elsewhere. A cluster that cannot be cleaned is given up after a while.
func (r *Reconciler) leaveManaged(ctx context.Context, k *operatorv1.Klusterlet, objects []*unstructured.Unstructured) error {
	secrets, err := r.secrets(ctx, k)
	if err != nil {
		return err // which says nothing of the managed cluster
	}
	err = r.cleanManaged(ctx, k, secrets, objects)
	if apierrors.IsConflict(err) { // the cluster has answered
		err = &waiting{"others on the managed cluster that write what is to be taken away: " + err.Error()}
	}
	var waits *waiting
	if err == nil || errors.As(err, &waits) {
		return errors.Join(outdated(eviction.Over(ctx, r.client, k)), err)
	}
	now := r.clock.Now()
	until, markErr := eviction.Until(ctx, r.client, k, now, givenUpAfter)
	if markErr != nil {
		return outdated(markErr)
	}
	if now.Before(until) {
		return &unreachable{err: err, until: until}
	}
	eviction.GivenUp(r.recorder, k, reasonGivenUp, "managed cluster", givenUpAfter, err, operatorv1.LabelKlusterlet)
	return nil
}

// unreachable is that a managed cluster could not be cleaned, and is tried again until it is given up.
type unreachable struct {
	err   error
	until time.Time
}

func (u *unreachable) Error() string {
	return fmt.Sprintf("the managed cluster cannot be cleaned, and is given up at %s: %v", u.until.UTC().Format(time.RFC3339), u.err)
}

// cleanManaged takes away what is on a managed cluster elsewhere, as its admin.
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
		// It has the source. It goes last, with what else is here: without it, a process that ends in between could not go on.
		objects = slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool {
			return o.GetKind() == namespaces.Kind && o.GetName() == k.AgentNamespace()
		})
	}
	// Rights go first, so that a pod that nobody could end has none.
	there := r.there(k, via)
	own, common := apart(objects, isOnManagedObject)
	if err := r.removeAll(ctx, there, own); err != nil {
		return err
	}
	if waitsFor, err := r.works(ctx, k, there, via); err != nil || waitsFor != "" {
		return orWaiting(err, waitsFor)
	}
	return r.removeAll(ctx, there, common)
}

// leaveHere takes away what is on the cluster that runs the pods: in the modes without another one, that is all.
func (r *Reconciler) leaveHere(ctx context.Context, k *operatorv1.Klusterlet, objects []*unstructured.Unstructured) error {
	here := r.here(k)
	if !k.IsDetached() {
		// With the rights of the agent, so they go after that.
		if waitsFor, err := r.works(ctx, k, here, nil); err != nil || waitsFor != "" {
			return orWaiting(err, waitsFor)
		}
	}
	own, common := apart(objects, func(*unstructured.Unstructured) bool { return true })
	if err := r.removeAll(ctx, here, own); err != nil {
		return err
	}
	names := []string{operatorv1.ExternalManagedKubeconfigRegistration, operatorv1.ExternalManagedKubeconfigWork, operatorv1.ExternalManagedKubeconfigAgent}
	// A copy of a Klusterlet has its finalizers, and may have its namespace. It was refused, and so the identity in there is not its own.
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

// removeSecret takes away what was minted, and the identity on the hub. What the user has put there stays, unless the namespace goes.
func (r *Reconciler) removeSecret(ctx context.Context, k *operatorv1.Klusterlet, name string) error {
	key := types.NamespacedName{Namespace: k.AgentNamespace(), Name: name}
	secret := &corev1.Secret{}
	if err := r.client.Get(ctx, key, secret); err != nil {
		return client.IgnoreNotFound(err)
	}
	if name != operatorv1.HubKubeconfigSecret && !ownerOf(k, r.management).Owns(secret) {
		return nil
	}
	r.keeper.Forget(key)
	return client.IgnoreNotFound(r.client.Delete(ctx, secret, client.Preconditions{UID: &secret.UID}))
}

// removeAll takes objects away, and waits until those are gone that are the Klusterlet's alone.
func (r *Reconciler) removeAll(ctx context.Context, from *cluster, objects []*unstructured.Unstructured) error {
	own, common := apart(objects, func(*unstructured.Unstructured) bool { return true })
	left, err := from.remove(ctx, own, metav1.DeletePropagationBackground)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return &waiting{fmt.Sprintf("the end of %s, which has finalizers", joined(left))}
	}
	for _, o := range common {
		if err := from.unshare(ctx, o); err != nil {
			return &failure{object: idOf(o), err: from.explained(err)}
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

// apart are the objects that are of the Klusterlet alone and that there may be, and those that are shared.
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

func orWaiting(err error, what string) error {
	if err == nil && what != "" {
		return &waiting{what}
	}
	return err
}

// stays says why a Klusterlet that is to go is still there. It is looked at again as often after errors: what they are about may be the
// last that is waited for, and nothing tells when it is over.
func (r *Reconciler) stays(ctx context.Context, k *operatorv1.Klusterlet, why error) (reconcile.Result, error) {
	if errors.Is(why, errOutdated) {
		return reconcile.Result{}, why
	}
	s := newReport(k)
	var waits *waiting
	var away *unreachable
	reason, after := operatorv1.ReasonKlusterletApplyFailed, lookAgain
	if r.clock.Since(k.DeletionTimestamp.Time) < young {
		after = lookSoon
	}
	switch {
	case errors.As(why, &waits):
		reason = reasonCleaning
	case errors.As(why, &away):
		reason, after = reasonUnreachable, max(time.Second, min(after, away.until.Sub(r.clock.Now())))
	case !apierrors.IsConflict(why):
		ctrl.LoggerFrom(ctx).Error(why, "The Klusterlet is being deleted, and something cannot be taken away yet")
	}
	s.applied(reason, why)
	s.unavailable(reason, "the Klusterlet is being deleted: "+why.Error())
	return reconcile.Result{RequeueAfter: after}, r.write(ctx, k, s)
}
